"""Steps of an operator with runs: start, watch, stop, resume and rerun; read the history."""

from person import check
from playwright.sync_api import expect

# The time limit for a run, in milliseconds.
RUN = 300_000


def start(page, target, select, tier="default"):
    """Start a run with the form on the target's page. The browser then shows the run."""
    page.goto(f"/targets/{target}")
    page.get_by_label("Cases", exact=True).fill(select)
    page.get_by_label("Tier").select_option(tier)
    page.get_by_role("button", name="Start a run").click()
    page.wait_for_url("**/runs/*")


def wait_for_progress(page, done):
    """Wait until the count of finished cases differs from `done`; return the count."""
    expect(page.locator("#done")).not_to_have_text(str(done))
    return int(page.locator("#done").inner_text())


def start_and_watch(person):
    page = person.page
    page.goto("/targets")
    person.look("targets")
    page.get_by_role("link", name="bad", exact=True).click()
    page.wait_for_url("**/targets/bad")
    page.get_by_label("Seed").fill("x")
    page.get_by_role("button", name="Start a run").click()
    check(page.url.endswith("/targets/bad"), "the form sends a seed that is not a number")
    person.look("target")
    start(page, "bad", "mpa rdmap")
    # From here on, the page shows the progress without a reload.
    page.evaluate("window.stayed = true")
    planned = page.locator("tr[data-key]").count()
    check(planned > 50, f"{planned} cases are planned")
    done = wait_for_progress(page, 0)
    check(done < planned, "the run ends before the page shows its progress")
    check(page.get_by_role("button", name="Stop the run").is_visible(), "an active run cannot be stopped")
    person.picture("run-live")
    expect(page.locator("#status")).to_have_text("done", timeout=RUN)
    verdicts = page.locator("tr[data-key] .verdict")
    check(verdicts.count() == planned, f"{verdicts.count()} verdicts of {planned} are shown")
    failed = page.locator("tr[data-key] .verdict.fail").count()
    wrong_keys = page.locator("tr[data-key^='mpa/7.1.1-key/wrong-octet'] .verdict.fail").count()
    check(wrong_keys == 16, f"{wrong_keys} of the 16 cases of the deviation fail")
    check(f"{failed} fail" in page.locator("#counts").inner_text(), f"the {failed} cases that fail are not counted")
    check(page.locator("#done").inner_text() == str(planned), "the count of finished cases differs from the plan")
    check("exit code 1" in page.locator("#code").inner_text(), "the exit code is not shown")
    check(page.locator("#bar").get_attribute("class") == "fail", "the progress bar does not show that the run failed")
    check(page.get_by_role("button", name="Stop the run").is_hidden(), "a finished run still has a button to stop it")
    check(page.evaluate("window.stayed === true"), "the page was reloaded meanwhile")
    person.look("run-watched", themes=["dark"])
    page.get_by_role("link", name="Show the complete result").click()
    page.get_by_role("button", name="Rerun all cases").wait_for()
    page.get_by_role("link", name="By section of the specifications").click()
    page.wait_for_url("**/sections")
    check("MPA-7.1.1-2" in page.locator("main").inner_text(), "the violated requirement is not in the list of sections")
    person.look("sections")
    return failed


def rerun_failed(person, failed):
    page = person.page
    page.go_back()
    page.get_by_role("button", name="Rerun cases that did not pass").click()
    expect(page.locator("tr[data-key]")).to_have_count(failed)
    expect(page.locator("#status")).to_have_text("done", timeout=RUN)


def stop_and_resume(person):
    page = person.page
    start(page, "builtin-tcp", "", tier="full")
    wait_for_progress(page, 0)
    page.goto("/targets/builtin-tcp")
    person.look("target-running", narrow=False, themes=["light"])
    page.get_by_role("link", name="Running").click()
    page.wait_for_url("**/runs/*")
    run = page.url
    planned = page.locator("tr[data-key]").count()
    page.get_by_role("button", name="Stop the run").click()
    expect(page.locator("#status")).to_have_text("cancelled", timeout=RUN)
    page.goto(run)
    done = int(page.locator("#done").inner_text())
    check(0 < done < planned, f"the stopped run has {done} of {planned} cases")
    check(page.get_by_role("button", name="Rerun all cases").is_visible(), "a stopped run cannot be repeated")
    # The status changes before the server has written the reports. Until then, the run is active.
    resume = page.get_by_role("button", name="Resume it")
    for _ in range(RUN // 500):
        page.goto("/targets/builtin-tcp")
        if resume.is_visible():
            break
        page.wait_for_timeout(500)
    resume.click()
    page.wait_for_url(run)
    wait_for_progress(page, done)
    page.get_by_role("button", name="Stop the run").click()
    expect(page.locator("#status")).to_have_text("cancelled", timeout=RUN)


def read_history(person):
    page = person.page
    page.goto("/targets/bad")
    check(page.locator("svg.chart").is_visible(), "no chart of a target's runs")
    person.look("trend")
    page.get_by_role("link", name="Baseline").click()
    page.wait_for_url("**/baseline")
    check("stale" in page.locator("main").inner_text(), "stale entries of the baseline are not shown")
    person.look("baseline")
    page.goto("/matrix")
    page.get_by_role("link", name="Initiators against responders").click()
    page.wait_for_url("**/pairs")
    person.look("pairs")
    page.goto("/runs/none")
    person.look("error")
