// Search fields that hide what does not match; "/" leads to the field, Escape empties it.

const fields = () => document.querySelectorAll("input[data-filters]");

export function applyFilters() {
  for (const field of fields()) {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const element of document.querySelectorAll(field.dataset.filters)) {
      const text = element.textContent.toLowerCase();
      element.hidden = !words.every((word) => text.includes(word));
    }
  }
}

export function setUpFilters() {
  for (const field of fields()) field.addEventListener("input", applyFilters);
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, textarea, select");
    const field = fields()[0];
    if (!field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape" && event.target === field) {
      field.value = "";
      applyFilters();
      field.blur();
    }
  });
}
