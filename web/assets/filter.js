// Says while a display filter is typed whether it is one; the server reads it as it will when it is used.

const input = document.getElementById("filter");
const valid = document.getElementById("valid");
let timer;
let asked = 0;

async function check() {
  const number = ++asked;
  const text = input.value.trim();
  const answer = text ? await fetch(`/api/filter?text=${encodeURIComponent(text)}`).then((got) => got.json()) : {};
  // A later question may be answered already.
  if (number !== asked) return;
  input.toggleAttribute("aria-invalid", false);
  valid.replaceChildren();
  if (answer.error) {
    input.setAttribute("aria-invalid", "true");
    const told = document.createElement("p");
    told.className = "sev-error";
    told.textContent = answer.error;
    valid.append(told);
  }
}

input?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => check().catch(() => {}), 200);
});
