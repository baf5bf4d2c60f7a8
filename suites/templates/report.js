// Decompresses the diagram, the bytes and the capture of a result when the user opens the result.
"use strict";
const packs = new Map();

// Returns a promise for the bytes of a compressed part. Each part is decompressed once.
function unpacked(id) {
  if (!packs.has(id)) {
    const octets = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate"));
    packs.set(id, new Response(stream).arrayBuffer());
  }
  return packs.get(id);
}

// Returns the part that an element names in data-at.
async function piece(element) {
  const [pack, from, to] = element.dataset.at.split(" ");
  delete element.dataset.at;
  return (await unpacked(pack)).slice(Number(from), Number(to));
}

// A data URL: the user can save the capture even if the page has no other files beside it.
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
    // Until then, and if this fails, the link leads to the file beside the page.
    if (capture) {
      capture.href = await address(await piece(capture));
      capture.download = `${result.id.replaceAll("/", "_")}.pcapng`;
    }
  } catch (error) {
    if (story) story.textContent = `This browser cannot decompress this part: ${error}`;
  }
}

// report.html#CASE shows that case, and unfolds the part that has the case.
function named() {
  const name = location.hash.slice(1);
  const result = document.getElementById(name) ?? document.getElementById(decodeURIComponent(name));
  if (result?.tagName !== "DETAILS") return;
  for (let at = result; at; at = at.parentElement.closest("details")) at.open = true;
  result.scrollIntoView();
}

// The event does not bubble. Only results have an id, other parts of the page have nothing to unpack.
document.addEventListener("toggle", ({ target }) => target.id && target.open && unfold(target), true);
document.querySelectorAll("details[id][open]").forEach(unfold);
addEventListener("hashchange", named);
named();
