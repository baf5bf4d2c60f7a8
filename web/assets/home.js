// Keeps the overview up to date: loads the page again every 20 seconds, and replaces its content. If
// the server does not answer, the page names the time of its content.

const INTERVAL = 20_000;
const updated = document.getElementById("updated");

function clock() {
  return new Date().toLocaleTimeString();
}

function isInUse() {
  const main = document.querySelector("main");
  return main.contains(document.activeElement) || String(getSelection()) !== "";
}

let last = clock();

async function update() {
  if (document.hidden || isInUse()) return;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) throw new Error(String(response.status));
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const content = page.getElementById("overview");
    if (content === null) throw new Error("another page");
    document.getElementById("overview").replaceWith(document.adoptNode(content));
    last = clock();
    updated.textContent = `updated at ${last}`;
    updated.className = "faint";
  } catch {
    updated.textContent = `The server does not answer. This page is from ${last}.`;
    updated.className = "line error";
  }
}

updated.textContent = `updated at ${last}`;
setInterval(update, INTERVAL);
