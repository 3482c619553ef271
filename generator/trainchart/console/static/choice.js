// The button that compares the runs that are chosen in the table.

export function applyChoice() {
  const button = document.getElementById("compare");
  if (!button) return;
  const count = document.querySelectorAll('input[name="run"]:checked').length;
  button.disabled = count < 2;
  button.textContent = count ? `Compare ${count}` : "Compare";
}

document.addEventListener("change", applyChoice);
