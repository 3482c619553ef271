// Makes an element equal to a fresh one and keeps what is the same, so that focus, selection and scrolling stay.

const OWN_STATE = new Set(["open"]);

export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !OWN_STATE.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !OWN_STATE.has(name)) old.setAttribute(name, value);
  }
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const known = new Map();
  for (const child of old.children) if (child.id) known.set(child.id, child);
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const match = child.id ? known.get(child.id) : next && !next.id && next.nodeName === child.nodeName ? next : undefined;
    if (!match) {
      old.insertBefore(child, next);
    } else if (match === next) {
      next = next.nextSibling;
      morph(match, child);
    } else {
      old.insertBefore(match, next);
      morph(match, child);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}
