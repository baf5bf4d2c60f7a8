"""An operator at the dashboard: starts, watches, stops and resumes a run, and compares targets over several runs."""

from person import check
from playwright.sync_api import expect

# What a run of the tests here may take, in milliseconds; a limit, nothing waits for it.
RUN = 120_000


def begins(page, target, select, tier="default"):
    """Starts a run by the form on the target's page; the browser is led to the run."""
    page.goto(f"/targets/{target}")
    page.get_by_label("Cases", exact=True).fill(select)
    page.get_by_label("Tier").select_option(tier)
    page.get_by_role("button", name="Start a run").click()
    page.wait_for_url("**/runs/*")


def wait_for_progress(page, done):
    """Waits until the count of finished cases differs from `done`; returns the count."""
    expect(page.locator("#done")).not_to_have_text(str(done))
    return int(page.locator("#done").inner_text())


def starts_a_run_and_watches_it(person):
    page = person.page
    page.goto("/targets")
    person.look("targets")
    page.get_by_role("link", name="bad", exact=True).click()
    page.wait_for_url("**/targets/bad")
    page.get_by_label("Seed").fill("x")
    page.get_by_role("button", name="Start a run").click()
    check(page.url.endswith("/targets/bad"), "a seed that is no number is sent")
    person.look("target")
    begins(page, "bad", "mpa rdmap")
    # From here on the page shows the progress without being loaded again.
    page.evaluate("window.stayed = true")
    planned = page.locator("tr[data-key]").count()
    check(planned > 50, f"{planned} cases are planned")
    done = wait_for_progress(page, 0)
    check(done < planned, "the run is over before it is watched")
    check(page.get_by_role("button", name="Stop the run").is_visible(), "a run that goes on cannot be stopped")
    person.picture("run-live")
    expect(page.locator("#status")).to_have_text("done", timeout=RUN)
    verdicts = page.locator("tr[data-key] .verdict")
    check(verdicts.count() == planned, f"{verdicts.count()} verdicts of {planned} are shown")
    failed = page.locator("tr[data-key] .verdict.fail").count()
    wrong_keys = page.locator("tr[data-key^='mpa/7.1.1-key/wrong-octet'] .verdict.fail").count()
    check(wrong_keys == 16, f"{wrong_keys} of the 16 cases of the deviation fail")
    check(f"{failed} fail" in page.locator("#counts").inner_text(), f"the {failed} cases that fail are not counted")
    check(page.locator("#done").inner_text() == str(planned), "the count is not that of the plan")
    check("exit code 1" in page.locator("#code").inner_text(), "the exit code is not shown")
    check(page.locator("#bar").get_attribute("class") == "fail", "the bar is not that of a run that failed")
    check(page.get_by_role("button", name="Stop the run").is_hidden(), "a run that is over can still be stopped")
    check(page.evaluate("window.stayed === true"), "the page was loaded again meanwhile")
    person.look("run-watched", themes=["dark"])
    page.get_by_role("link", name="Show the complete result").click()
    page.get_by_role("button", name="Rerun all cases").wait_for()
    page.get_by_role("link", name="By section of the specifications").click()
    page.wait_for_url("**/sections")
    check("MPA-7.1.1-2" in page.locator("main").inner_text(), "the requirement that is broken is not among the sections")
    person.look("sections")
    return failed


def runs_again_what_failed(person, failed):
    page = person.page
    page.go_back()
    page.get_by_role("button", name="Rerun cases that did not pass").click()
    expect(page.locator("tr[data-key]")).to_have_count(failed)
    expect(page.locator("#status")).to_have_text("done", timeout=RUN)


def stops_a_run_and_goes_on_with_it(person):
    page = person.page
    begins(page, "builtin-tcp", "", tier="full")
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
    check(0 < done < planned, f"{done} of {planned} cases are kept of a run that was stopped")
    check(page.get_by_role("button", name="Rerun all cases").is_visible(), "a run that was stopped cannot be repeated")
    page.goto("/targets/builtin-tcp")
    page.get_by_role("button", name="Resume it").click()
    page.wait_for_url(run)
    wait_for_progress(page, done)
    page.get_by_role("button", name="Stop the run").click()
    expect(page.locator("#status")).to_have_text("cancelled", timeout=RUN)


def looks_at_targets_from_run_to_run(person):
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
