// The live page of a run: verdicts, counters and the current step. If the connection is lost, the
// browser reconnects, and the server sends the missed events.

const progress = document.getElementById("progress");
const rows = new Map([...document.querySelectorAll("tr[data-key]")].map((row) => [row.dataset.key, row]));
const order = ["error", "fail", "inconclusive", "pass", "unimplemented", "not-applicable"];
const verdicts = new Map();

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function setText(id, text) {
  document.getElementById(id).textContent = text;
}

function show(key, content) {
  rows.get(key)?.cells[1].replaceChildren(content);
}

function count() {
  const numbers = new Map();
  for (const verdict of verdicts.values()) numbers.set(verdict, (numbers.get(verdict) ?? 0) + 1);
  const shown = order.filter((verdict) => numbers.has(verdict));
  const parts = shown.flatMap((verdict) => [element("span", `verdict ${verdict}`, `${numbers.get(verdict)} ${verdict}`), " "]);
  document.getElementById("counts").replaceChildren(...parts);
  setText("done", String(verdicts.size));
  const bar = document.getElementById("bar");
  bar.value = verdicts.size;
  bar.className = order.slice(0, 4).find((verdict) => numbers.has(verdict)) ?? "";
}

const waits = document.getElementById("waits");
let until = waits.hidden ? 0 : Date.now() + 1000 * Number(document.getElementById("countdown").textContent);

function countDown() {
  if (waits.hidden) return;
  setText("countdown", String(Math.max(0, Math.round((until - Date.now()) / 1000))));
  setTimeout(countDown, 1000);
}

const updates = {
  waiting: ({ what, seconds }) => {
    setText("status", "waiting-for-target");
    setText("what", what);
    until = Date.now() + 1000 * seconds;
    const was = waits.hidden;
    waits.hidden = false;
    if (was) countDown();
  },
  started: ({ key }) => {
    waits.hidden = true;
    setText("status", "running");
    setText("now", key);
    if (!verdicts.has(key)) show(key, element("span", "", "running"));
  },
  step: ({ key, text }) => setText("now", `${key}: ${text}`),
  finished: ({ key, verdict, duration, left }) => {
    if (left) setText("left", `about ${left}`);
    verdicts.set(key, verdict);
    show(key, element("span", `verdict ${verdict}`, verdict));
    const row = rows.get(key);
    if (row) row.cells[2].textContent = duration;
    count();
  },
  done: ({ status, exit_code, reasons }, source) => {
    source.close();
    waits.hidden = true;
    // The reloaded page has the actions for a finished run, its violated requirements and duration.
    document.querySelector(".acts")?.remove();
    document.getElementById("left").parentElement.remove();
    setText("status", status);
    setText("code", `, exit code ${exit_code}`);
    setText("reasons", reasons.join("; "));
    document.getElementById("bar").className = { 0: "pass", 1: "fail", 3: "inconclusive", 4: "error" }[exit_code] ?? "";
    const again = element("a", "", "Show the complete result");
    again.href = location.pathname;
    document.getElementById("now").replaceChildren(again);
  },
};

if (progress?.dataset.events) {
  countDown();
  const source = new EventSource(progress.dataset.events);
  source.onmessage = (message) => {
    const update = JSON.parse(message.data);
    updates[update.event]?.(update, source);
  };
}
