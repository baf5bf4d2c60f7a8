// Unpacks what the report holds compressed: the diagram and the octets of a result, and its capture, once the result is unfolded.
"use strict";
const packs = new Map();

// The octets of a pack, as a promise; each is unpacked once.
function unpacked(id) {
  if (!packs.has(id)) {
    const octets = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate"));
    packs.set(id, new Response(stream).arrayBuffer());
  }
  return packs.get(id);
}

// What an element names as its own.
async function piece(element) {
  const [pack, from, to] = element.dataset.at.split(" ");
  delete element.dataset.at;
  return (await unpacked(pack)).slice(Number(from), Number(to));
}

// An address that holds the octets themselves: it can be saved from a page that lies alone in a folder.
function address(octets) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(new Blob([octets], { type: "application/octet-stream" }));
  });
}

async function unfold(result) {
  const story = result.querySelector(".story[data-at]");
  const capture = result.querySelector("a[data-at]");
  try {
    if (story) story.innerHTML = new TextDecoder().decode(await piece(story));
    // Until then, and where this fails, the link is to the file beside the page.
    if (capture) {
      capture.href = await address(await piece(capture));
      capture.download = `${result.id.replaceAll("/", "_")}.pcapng`;
    }
  } catch (error) {
    if (story) story.textContent = `This browser cannot unpack it: ${error}`;
  }
}

// report.html#CASE shows that case.
function named() {
  const name = location.hash.slice(1);
  const result = document.getElementById(name) ?? document.getElementById(decodeURIComponent(name));
  if (result?.tagName !== "DETAILS") return;
  result.open = true;
  result.scrollIntoView();
}

// It does not bubble.
document.addEventListener("toggle", (event) => event.target.open && unfold(event.target), true);
document.querySelectorAll("details[open]").forEach(unfold);
addEventListener("hashchange", named);
named();
