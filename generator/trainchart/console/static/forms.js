// Says on a form that its request is under way, since helm may take a while, and leads to what is wrong.

for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) {
      event.preventDefault(); // a second click
      return;
    }
    if (event.submitter?.hasAttribute("data-quiet")) return;
    form.dataset.sent = "yes";
    form.querySelector(".busy").textContent = form.dataset.busy;
  });
}
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-busy]")) {
    delete form.dataset.sent;
    form.querySelector(".busy").textContent = "";
  }
});
document.querySelector('[aria-invalid="true"]')?.focus();
