// Links the fields and bytes of a packet. If a field has the focus or is under the pointer, the
// script marks the bytes of the field. If a byte is under the pointer, the script marks the
// smallest field that contains the byte. Without this script, the link of a field leads to the
// first byte of the field.

const bytes = new Map([...document.querySelectorAll(".hex td[id]")].map((cell) => [Number(cell.id.slice(1)), cell]));
const chosen = document.getElementById("chosen");

// Ranges look like "54-70 71-72". The first number is the offset of the first byte. The second
// number is the offset after the last byte.
const links = [...document.querySelectorAll("a[data-at]")].map((link) => {
  const ranges = link.dataset.at.split(" ").map((range) => range.split("-").map(Number));
  const size = ranges.reduce((sum, [start, end]) => sum + end - start, 0);
  return { link, ranges, size };
});

function words({ link, ranges }) {
  const part = ([start, end]) => (end - start === 1 ? `byte ${start}` : `bytes ${start} to ${end - 1}`);
  return `${link.textContent}: ${ranges.map(part).join(", ")}`;
}

function mark(field) {
  for (const marked of document.querySelectorAll(".on")) marked.classList.remove("on");
  field.link.classList.add("on");
  for (const [start, end] of field.ranges) {
    for (let at = start; at < end; at++) bytes.get(at)?.classList.add("on");
  }
  chosen.textContent = words(field);
}

for (const field of links) {
  const first = () => bytes.get(field.ranges[0][0]);
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

function smallestField(at) {
  const all = links.filter(({ ranges }) => ranges.some(([start, end]) => start <= at && at < end));
  // If two fields have the same bytes, select the deeper field, which comes later in the page.
  return all.reduce((best, field) => (best && best.size < field.size ? best : field), undefined);
}

for (const [at, cell] of bytes) {
  const field = () => smallestField(at);
  cell.addEventListener("mouseenter", () => {
    const found = field();
    if (found) mark(found);
  });
  cell.addEventListener("click", () => field()?.link.focus());
}
