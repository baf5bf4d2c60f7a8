"""dashboard.py URL OUT - uses the dashboard at URL as a person does, and stops at the first thing that is not as it should be.

The steps come one after the other in `main`; `person.py` has what they are made of. Tokens are in VIEWER and OPERATOR.
"""

import os
import sys
from pathlib import Path

import captures
import runs
from person import Person, check
from playwright.sync_api import sync_playwright


def signs_in(person, token):
    page = person.page
    page.goto("/matrix")
    check(page.get_by_label("Token").is_visible(), "the page does not request a token from a stranger")
    check("builtin" not in page.content(), "the page shows targets to a stranger")
    person.look("login")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/matrix")


def becomes(person, token):
    """Signs out, and in again with more rights."""
    page = person.page
    page.goto("/targets/builtin")
    check(page.get_by_role("button").count() == 0, "a viewer is shown what an operator may do")
    page.goto("/login")
    person.look("access")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Runs").wait_for()


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
        becomes(person, os.environ["OPERATOR"])
        failed = runs.starts_a_run_and_watches_it(person)
        runs.runs_again_what_failed(person, failed)
        runs.stops_a_run_and_goes_on_with_it(person)
        runs.looks_at_targets_from_run_to_run(person)
        siw = Path("captures/siw")
        captures.finds_what_is_wrong(person, siw / "violations-6-kinds-crc.pcap")
        captures.pages_through_many(person, siw / "host-matrix.pcap", out / "long.pcap")
        person.goes_by_keyboard(["/", "/matrix?case=7.1.1-key", "/targets/bad", "/captures"])
        person.without_scripts(["/", "/matrix"])
        print(person.summary())
        person.close()


main(sys.argv[1], Path(sys.argv[2]))
