// The live page of a capture that grows: shows the newest packets and findings. If the connection
// is lost, the browser reconnects, and the server reads the capture again from the beginning.

const live = document.getElementById("live");
const rows = document.getElementById("rows");
const findings = document.getElementById("findings");
const paused = document.getElementById("paused");
const most = { rows: 300, findings: 100 };

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function packetLink(number) {
  const link = element("a", String(number));
  link.href = live.dataset.packets + number;
  link.dataset.line = "";
  return link;
}

function packetRow({ number, ns, from, to, octets, words, worst }) {
  const row = document.createElement("tr");
  const head = element("th", "", "number");
  head.scope = "row";
  head.append(packetLink(number));
  const cells = [(ns / 1e9).toFixed(6), from, to, octets].map((text) => element("td", text, "number"));
  row.append(head, ...cells, element("td", words), element("td", worst ?? "", worst ? `sev-${worst}` : ""));
  return row;
}

// One line for each problem. `also` has the other requirements that the same messages violate.
function findingLine({ packet, severity, requirement, found, also = [] }) {
  const line = element("li", "");
  line.append(element("span", severity, `sev-${severity}`), " ", element("code", requirement), ` ${found}, packet `, packetLink(packet));
  if (also.length > 0) line.append(element("span", `, also violated: ${also.join(", ")}`, "faint"));
  return line;
}

function put(list, made, limit) {
  list.prepend(...made.reverse());
  while (list.children.length > limit) list.lastElementChild.remove();
}

function count(id, number, what) {
  document.getElementById(id).textContent = `${number} ${what}${number === 1 ? "" : "s"}`;
}

const source = new EventSource(live.dataset.events);
source.onopen = () => {
  rows.replaceChildren();
  findings.replaceChildren();
};
source.onmessage = (message) => {
  const batch = JSON.parse(message.data);
  const [notes, warnings, errors] = batch.counts;
  document.getElementById("status").textContent = batch.end === undefined ? "live" : `ended${batch.end && `: ${batch.end}`}`;
  document.getElementById("packets").textContent = batch.packets;
  count("errors", errors, "error");
  count("warnings", warnings, "warning");
  count("notes", notes, "note");
  const remarks = (batch.remarks ?? []).map((text) => element("p", text, "outcome"));
  document.getElementById("remarks").replaceChildren(...remarks);
  if (!paused.checked) {
    put(rows, batch.rows.map(packetRow), most.rows);
    put(findings, batch.findings.map(findingLine), most.findings);
  }
  if (batch.end !== undefined) source.close();
};
