"""dashboard.py URL OUT - use the dashboard at URL as a person does; stop at the first failed check.

`main` lists the steps in order, and `person.py` has their common functions. The environment variables
VIEWER and OPERATOR have the tokens.
"""

import os
import sys
from pathlib import Path

import captures
import runs
from person import Person, check
from playwright.sync_api import sync_playwright


def sign_in(person, token):
    page = person.page
    page.goto("/matrix")
    check(page.get_by_label("Token").is_visible(), "without a token, the page does not request one")
    check("builtin" not in page.content(), "the page shows targets without a token")
    person.look("login")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/matrix")


def sign_in_again(person, token):
    """Sign out, and sign in with another token."""
    page = person.page
    page.goto("/targets/builtin")
    check(page.get_by_role("button").count() == 0, "the page shows an operator's buttons to a viewer")
    page.goto("/login")
    person.look("access")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Overview").wait_for()


def read_failed_case(person, run_folder):
    page = person.page
    page.goto("/")
    person.look("home")
    page.goto("/runs")
    person.look("runs")
    page.locator("main table a[href^='/runs/']", has_text="").last.click()
    page.wait_for_url("**/runs/*")
    person.look("run")
    height = page.evaluate("document.documentElement.scrollHeight")
    check(height <= 5000, f"the page of a run is {height} pixels high before a part is unfolded")
    failed = page.locator("a[href*='/cases/mpa/7.1.1-key/wrong-octet']").first
    failed.click()
    page.wait_for_url("**/cases/**")
    text = page.locator("main").inner_text()
    for required in ("MPA-7.1.1-2", "expected", "actual"):
        check(required.lower() in text.lower(), f"the case page has no '{required}'")
    check(page.locator("svg.ladder").first.is_visible(), "no ladder on the case page")
    check(page.locator("table.hex td.wrong").count() > 0, "no marked bytes on the case page")
    person.look("case")
    with page.expect_download() as download:
        page.locator("a[href*='/evidence/pcapng/']").first.click()
    downloaded = Path(download.value.path()).read_bytes()
    evidence = [file.read_bytes() for file in run_folder.rglob("evidence.pcapng")]
    check(downloaded in evidence, "the downloaded pcapng is not evidence of the run")


def compare(person):
    page = person.page
    page.goto("/runs")
    runs = page.locator("main table tbody tr")
    check(runs.count() == 2, f"{runs.count()} runs instead of 2")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?**")
    check("wrong-octet" in page.locator("main").inner_text(), "the fixed case is not in the comparison")
    person.look("compare")
    page.goto("/matrix")
    person.look("matrix")


def main(url, out):
    with sync_playwright() as playwright:
        person = Person(playwright, url, out)
        sign_in(person, os.environ["VIEWER"])
        read_failed_case(person, out / "run")
        compare(person)
        sign_in_again(person, os.environ["OPERATOR"])
        failed = runs.start_and_watch(person)
        runs.rerun_failed(person, failed)
        runs.stop_and_resume(person)
        runs.read_history(person)
        siw = Path("captures/siw")
        captures.read_capture(person, siw / "violations-6-kinds-crc.pcap")
        captures.read_commands(person, siw.parent / "storage" / "nvme-discover.pcap")
        captures.page_through_many(person, siw / "host-matrix.pcap", out / "long.pcap")
        person.use_keyboard(["/", "/runs", "/matrix?case=7.1.1-key", "/targets/bad", "/captures"])
        person.read_without_scripts(["/", "/runs", "/targets", "/matrix"])
        print(person.summary())
        person.close()


main(sys.argv[1], Path(sys.argv[2]))
