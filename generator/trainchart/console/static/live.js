// Keeps a page up to date: parts of it come as HTML that the server has escaped, curves as numbers.

import { applyChoice } from "/static/choice.js";
import { applyFilters, setUpFilters } from "/static/filters.js";
import { drawCurves } from "/static/curves.js";
import { morph } from "/static/morph.js";

const NEAR_END = 40; // pixels
const live = document.getElementById("live");
let source;

function say(state, text) {
  live.dataset.state = state;
  if (live.textContent !== text) live.textContent = text;
}

function replaceParts(parts) {
  const logBefore = document.querySelector(".log");
  const follows = !logBefore || logBefore.scrollHeight - logBefore.scrollTop - logBefore.clientHeight < NEAR_END;
  for (const [id, html] of Object.entries(parts)) {
    const old = document.getElementById(id);
    const template = document.createElement("template");
    template.innerHTML = html.trim();
    const fresh = template.content.firstElementChild;
    if (old && fresh) morph(old, fresh);
    else location.reload(); // a page that began without its run
  }
  applyFilters();
  applyChoice();
  const log = document.querySelector(".log");
  if (follows) scrollToEnd(log);
}

function scrollToEnd(log) {
  if (log) log.scrollTop = log.scrollHeight;
}

function connect() {
  source?.close();
  source = new EventSource(document.body.dataset.stream);
  source.addEventListener("open", () => say("live", "live"));
  source.addEventListener("parts", (event) => replaceParts(JSON.parse(event.data)));
  source.addEventListener("curves", (event) => drawCurves(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) say("lost", "signed out: reload the page");
    else say("lost", "no connection to the console: trying again");
  });
}

setUpFilters();
applyChoice();
scrollToEnd(document.querySelector(".log"));
connect();
// Browsers allow six connections to a server, and each page that shows something holds one.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) connect();
  else {
    source?.close();
    say("waiting", "paused");
  }
});
