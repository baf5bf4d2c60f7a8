// A packet's fields and octets, linked: a field that has the focus, or the pointer on it, marks its octets; an octet under the pointer
// marks the smallest field that holds it. Without this script a field's link leads to its first octet.

const octets = new Map([...document.querySelectorAll(".hex td[id]")].map((cell) => [Number(cell.id.slice(1)), cell]));
const chosen = document.getElementById("chosen");

// Ranges are written "54-70 71-72": first octet, and the one behind the last.
const links = [...document.querySelectorAll("a[data-at]")].map((link) => {
  const ranges = link.dataset.at.split(" ").map((range) => range.split("-").map(Number));
  const size = ranges.reduce((sum, [start, end]) => sum + end - start, 0);
  return { link, ranges, size };
});

function words({ link, ranges }) {
  const part = ([start, end]) => (end - start === 1 ? `octet ${start}` : `octets ${start} to ${end - 1}`);
  return `${link.textContent}: ${ranges.map(part).join(", ")}`;
}

function mark(field) {
  for (const marked of document.querySelectorAll(".on")) marked.classList.remove("on");
  field.link.classList.add("on");
  for (const [start, end] of field.ranges) {
    for (let at = start; at < end; at++) octets.get(at)?.classList.add("on");
  }
  chosen.textContent = words(field);
}

for (const field of links) {
  const first = () => octets.get(field.ranges[0][0]);
  field.link.addEventListener("mouseenter", () => mark(field));
  field.link.addEventListener("focus", () => {
    mark(field);
    first()?.scrollIntoView({ block: "nearest" });
  });
  field.link.addEventListener("click", (event) => {
    event.preventDefault();
    field.link.focus();
    first()?.scrollIntoView({ block: "nearest" });
  });
}

function holding(at) {
  const all = links.filter(({ ranges }) => ranges.some(([start, end]) => start <= at && at < end));
  // The deeper of two with the same octets comes later.
  return all.reduce((best, field) => (best && best.size < field.size ? best : field), undefined);
}

for (const [at, cell] of octets) {
  const field = () => holding(at);
  cell.addEventListener("mouseenter", () => {
    const found = field();
    if (found) mark(found);
  });
  cell.addEventListener("click", () => field()?.link.focus());
}
