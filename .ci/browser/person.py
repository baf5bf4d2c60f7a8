"""A person at the dashboard: a browser, looked at in the dark and by day, wide and narrow, with axe-core's eyes and by keyboard."""

import json
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

CHROMIUM = "/usr/bin/chromium"
# What the browser may need for one step, in milliseconds; a limit, nothing waits for it.
PATIENCE = 20_000


def check(holds, otherwise):
    if not holds:
        sys.exit(f"dashboard: {otherwise}")


class Person:
    def __init__(self, playwright, url, out):
        self.out = out
        self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        self.context = self.browser.new_context(base_url=url, viewport={"width": 1280, "height": 900})
        self.context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        self.page = self.context.new_page()
        self.looked_at = []
        self.reached = 0
        self.requested_hosts = set()
        # Whatever a page asks for is the dashboard's, and no script of it fails.
        self.page.on("request", lambda request: self.requested_hosts.add(request.url.split("/")[2]))
        self.page.on("pageerror", lambda error: check(False, f"{self.page.url}: {error}"))

    def look(self, name, narrow=True, themes=("light", "dark")):
        """No barrier in either theme; nothing is wider than a narrow window, unless that is left out; a picture of each."""
        for theme in themes:
            self.page.emulate_media(color_scheme=theme)
            found = Axe().run(self.page).response["violations"]
            barriers = [f"{v['id']}: {v['help']} ({v['nodes'][0]['html'][:200]})" for v in found]
            check(not found, f"{name}, {theme}: axe-core finds\n  " + "\n  ".join(barriers))
            self.picture(f"{name}-{theme}")
        self.page.emulate_media(color_scheme="light")
        self.looked_at.append(name)
        if not narrow:
            return
        self.page.set_viewport_size({"width": 400, "height": 800})
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        check(wide <= 400, f"{name} is {wide} pixels wide in a window of 400")
        self.picture(f"{name}-narrow")
        self.page.set_viewport_size({"width": 1280, "height": 900})

    def picture(self, name):
        self.page.screenshot(path=self.out / f"{name}.png")

    def goes_by_keyboard(self, paths):
        """Tab reaches everything that can be used, each with a mark that shows where one is."""
        for path in paths:
            self.page.goto(path)
            usable = self.page.evaluate(
                "[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]"
                ".filter(e => e.checkVisibility() && !e.disabled && e.tabIndex >= 0 && e.type !== 'radio')"
                ".map((e, i) => e.number = i).length"
            )
            seen = set()
            for _ in range(usable + 20):
                self.page.keyboard.press("Tab")
                place = self.page.evaluate(
                    "(() => { const e = document.activeElement; if (!e || e === document.body) return null; const s = getComputedStyle(e);"
                    " return [e.number ?? -1, s.outlineStyle !== 'none' || s.boxShadow !== 'none', e.outerHTML.slice(0, 120)]; })()"
                )
                if place is None:
                    continue
                check(place[1], f"{path}: nothing shows the focus on {place[2]}")
                if place[0] >= 0:
                    seen.add(place[0])
            check(len(seen) >= usable, f"{path}: Tab reaches {len(seen)} of {usable} elements")
            self.reached += len(seen)

    def without_scripts(self, paths):
        """Reading needs no script."""
        plain = self.browser.new_context(
            base_url=self.page.url, java_script_enabled=False, storage_state=self.context.storage_state()
        )
        for path in paths:
            page = plain.new_page()
            page.goto(path)
            check("builtin" in page.locator("main").inner_text(), f"{path} shows nothing without scripts")
        plain.close()

    def summary(self):
        check(len(self.requested_hosts) == 1, f"pages request other hosts: {json.dumps(sorted(self.requested_hosts))}")
        return f"looked at {', '.join(self.looked_at)}; {self.reached} elements by keyboard; no barrier, no other host"

    def close(self):
        self.browser.close()
