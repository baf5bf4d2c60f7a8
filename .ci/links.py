"""links.py FOLDER - check the links between the HTML pages of FOLDER, with their fragments."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]


folder = Path(sys.argv[1]).resolve()
# print.html has all pages in one file, with renamed anchors.
pages = {path: Page(path) for path in folder.rglob("*.html") if path.name not in ("print.html", "404.html", "toc.html")}
dead, followed = [], 0
for path, page in pages.items():
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        followed += 1
        if target.name in ("print.html", "toc.html"):
            continue
        if not target.exists() or (parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors):
            dead.append(f"{path.relative_to(folder)}: {link}")
print("\n".join(dead[:20]))
print(f"{len(pages)} pages, {followed} links, {len(dead)} dead")
sys.exit(bool(dead) or followed < 10_000)
