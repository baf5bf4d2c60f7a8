"""dashboard.py URL OUT - uses the dashboard at URL as a person does, and stops at the first thing that is not as it should be.

The steps come one after the other in `main`; `person.py` has what they are made of. Tokens are in VIEWER and OPERATOR.
"""

import os
import sys
from pathlib import Path

from person import Person, check
from playwright.sync_api import sync_playwright


def signs_in(person, token):
    page = person.page
    page.goto("/matrix")
    check(page.get_by_label("Token").is_visible(), "a stranger is not asked for a token")
    check("builtin" not in page.content(), "a stranger is told of targets")
    person.look("login")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/matrix")


def reads_a_failed_case(person, run_folder):
    page = person.page
    page.goto("/")
    person.look("runs")
    page.locator("main table a[href^='/runs/']", has_text="").last.click()
    page.wait_for_url("**/runs/*")
    person.look("run")
    failed = page.locator("a[href*='/cases/mpa/7.1.1-key/wrong-octet']").first
    failed.click()
    page.wait_for_url("**/cases/**")
    text = page.locator("main").inner_text()
    for word in ("MPA-7.1.1-2", "expected", "actual"):
        check(word.lower() in text.lower(), f"the case page has no {word}")
    check(page.locator("svg.ladder").first.is_visible(), "no ladder on the case page")
    check(page.locator("table.hex td.wrong").count() > 0, "no marked octets on the case page")
    person.look("case")
    with page.expect_download() as download:
        page.locator("a[href*='/evidence/pcapng/']").first.click()
    got = Path(download.value.path()).read_bytes()
    kept = [file.read_bytes() for file in run_folder.rglob("evidence.pcapng")]
    check(got in kept, "the downloaded pcapng is no evidence of the run")


def compares(person):
    page = person.page
    page.goto("/")
    runs = page.locator("main table tbody tr")
    check(runs.count() == 2, f"{runs.count()} runs instead of 2")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?**")
    check("wrong-octet" in page.locator("main").inner_text(), "what was fixed is not in the comparison")
    person.look("compare")
    page.goto("/matrix")
    person.look("matrix")


def main(url, out):
    with sync_playwright() as playwright:
        person = Person(playwright, url, out)
        signs_in(person, os.environ["VIEWER"])
        reads_a_failed_case(person, out / "run")
        compares(person)
        person.goes_by_keyboard(["/", "/matrix?case=7.1.1-key"])
        person.without_scripts(["/", "/matrix"])
        print(person.told())
        person.close()


main(sys.argv[1], Path(sys.argv[2]))
