// While the user types a display filter, the server checks the filter and the page shows the error.

const input = document.getElementById("filter");
const valid = document.getElementById("valid");
let timer;
let requests = 0;

async function check() {
  const number = ++requests;
  const text = input.value.trim();
  const answer = text ? await fetch(`/api/filter?text=${encodeURIComponent(text)}`).then((got) => got.json()) : {};
  // The answer to a later request may have arrived first.
  if (number !== requests) return;
  input.toggleAttribute("aria-invalid", false);
  valid.replaceChildren();
  if (answer.error) {
    input.setAttribute("aria-invalid", "true");
    const error = document.createElement("p");
    error.className = "sev-error";
    error.textContent = answer.error;
    valid.append(error);
  }
}

input?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => check().catch(() => {}), 200);
});
