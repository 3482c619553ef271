// Runs before the page is drawn: applies the colours that the user has chosen, and lets the button change them.
"use strict";
(() => {
  const choices = ["system", "light", "dark"];
  const read = () => {
    try { return localStorage.getItem("theme") || "system"; } catch { return "system"; }
  };
  const apply = (choice) => {
    if (choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Colours: ${choice}`;
    document.dispatchEvent(new Event("theme"));
  };
  apply(read());
  addEventListener("DOMContentLoaded", () => {
    apply(read());
    document.getElementById("theme").addEventListener("click", () => {
      const next = choices[(choices.indexOf(read()) + 1) % choices.length];
      try { localStorage.setItem("theme", next); } catch { /* the choice lasts as long as the page */ }
      apply(next);
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("theme")));
})();
