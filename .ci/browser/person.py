"""A browser with checks of each page: both themes, two widths, axe-core, keyboard, no scripts."""

import json
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

CHROMIUM = "/usr/bin/chromium"
# The time limit for one step of the browser, in milliseconds.
PATIENCE = 20_000


def check(passed, message):
    if not passed:
        sys.exit(f"dashboard: {message}")


class Person:
    def __init__(self, playwright, url, out):
        self.out = out
        self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        self.context = self.browser.new_context(base_url=url, viewport={"width": 1280, "height": 900})
        self.context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        self.page = self.context.new_page()
        self.checked = []
        self.reached = 0
        self.requested_hosts = set()
        # Pages may send requests to the dashboard only, and their scripts must not fail.
        self.page.on("request", lambda request: self.requested_hosts.add(request.url.split("/")[2]))
        self.page.on("pageerror", lambda error: check(False, f"{self.page.url}: {error}"))

    def look(self, name, narrow=True, themes=("light", "dark")):
        """Check both themes with axe-core, check a narrow window if `narrow`, take screenshots."""
        for theme in themes:
            self.page.emulate_media(color_scheme=theme)
            found = Axe().run(self.page).response["violations"]
            barriers = [f"{v['id']}: {v['help']} ({v['nodes'][0]['html'][:200]})" for v in found]
            check(not found, f"{name}, {theme}: axe-core finds\n  " + "\n  ".join(barriers))
            self.picture(f"{name}-{theme}")
        self.page.emulate_media(color_scheme="light")
        self.checked.append(name)
        if not narrow:
            return
        self.page.set_viewport_size({"width": 400, "height": 800})
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        check(wide <= 400, f"{name} is {wide} pixels wide in a window of 400")
        self.picture(f"{name}-narrow")
        self.page.set_viewport_size({"width": 1280, "height": 900})

    def picture(self, name):
        self.page.screenshot(path=self.out / f"{name}.png")

    def use_keyboard(self, paths):
        """Check that Tab reaches every control, and that each shows the focus."""
        for path in paths:
            self.page.goto(path)
            usable = self.page.evaluate(
                "[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]"
                ".filter(e => e.checkVisibility() && !e.disabled && e.tabIndex >= 0 && e.type !== 'radio')"
                ".map((e, i) => e.number = i).length"
            )
            reached = set()
            for _ in range(usable + 20):
                self.page.keyboard.press("Tab")
                focus = self.page.evaluate(
                    "(() => { const e = document.activeElement; if (!e || e === document.body) return null;"
                    " const s = getComputedStyle(e);"
                    " return [e.number ?? -1, s.outlineStyle !== 'none' || s.boxShadow !== 'none', e.outerHTML.slice(0, 120)]; })()"
                )
                if focus is None:
                    continue
                check(focus[1], f"{path}: nothing shows the focus on {focus[2]}")
                if focus[0] >= 0:
                    reached.add(focus[0])
            check(len(reached) >= usable, f"{path}: Tab reaches {len(reached)} of {usable} elements")
            self.reached += len(reached)

    def read_without_scripts(self, paths):
        """Check that pages can be read without scripts."""
        plain = self.browser.new_context(
            base_url=self.page.url, java_script_enabled=False, storage_state=self.context.storage_state()
        )
        for path in paths:
            page = plain.new_page()
            page.goto(path)
            check("builtin" in page.locator("main").inner_text(), f"{path} shows nothing without scripts")
        plain.close()

    def summary(self):
        check(len(self.requested_hosts) == 1, f"pages send requests to other hosts: {json.dumps(sorted(self.requested_hosts))}")
        pages = ", ".join(self.checked)
        return f"checked {pages}; {self.reached} elements by keyboard; no barriers, no other hosts"

    def close(self):
        self.browser.close()
