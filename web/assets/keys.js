// Keyboard shortcuts. Each shortcut opens or focuses a link.

// Links in a folded part cannot have the focus.
const lines = () => [...document.querySelectorAll("a[data-line]")].filter((link) => link.checkVisibility());

function step(by) {
  const all = lines();
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
  all[next]?.focus();
}

const follow = (selector) => document.querySelector(selector)?.click();

const keys = {
  j: () => step(1),
  k: () => step(-1),
  n: () => follow("a[rel=next]"),
  p: () => follow("a[rel=prev]"),
  u: () => follow("a[data-up], a.home"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.("input, textarea, select")) return;
  const action = keys[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});
