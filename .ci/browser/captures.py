"""Steps of an operator with captures: upload, filter, page through packets, download, delete."""

from pathlib import Path

from person import check

# The time limit for the upload and reading of the long capture, in milliseconds.
READ = 120_000
# The size of a pcap file header, in bytes.
HEADER = 24


def write_long(short, into, times):
    """Write the frames of a pcap `times` times."""
    data = short.read_bytes()
    into.write_bytes(data + data[HEADER:] * (times - 1))
    return into


def upload(page, file):
    page.goto("/captures")
    page.get_by_label("Upload a capture").set_input_files(file)
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_role("heading", name=file.name).wait_for(timeout=READ)
    return page.url.split("?")[0]


def read_capture(person, capture):
    page = person.page
    page.goto("/captures")
    check("no capture in the folder yet" in page.locator("main").inner_text(), "the page does not report an empty folder")
    person.look("captures-none")
    address = upload(page, capture)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    check(Path(download.value.path()).read_bytes() == capture.read_bytes(), "the downloaded capture differs from the uploaded one")
    person.look("packets")
    page.get_by_label("Display filter").fill("iwarp_rdma.opcode ==")
    page.locator("#valid .sev-error").wait_for()
    person.look("filter-wrong")
    page.get_by_label("Display filter").fill("finding")
    page.locator("#valid .sev-error").wait_for(state="detached")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("that pass").wait_for()
    check(page.locator("table.packets td.sev-error").count() > 0, "the filtered list shows no packet with a finding")
    person.look("packets-filtered")
    page.locator("table.packets a[data-line]").first.click()
    page.wait_for_url("**/packets/*")
    check("Findings" in page.locator("main").inner_text(), "the packet's finding is not on its page")
    page.locator("ul.fields a[data-at]").first.focus()
    check(page.locator("table.hex td.on").count() > 0, "a selected field does not mark its bytes")
    person.look("packet")
    for name in ("findings", "connections", "operations", "io", "statistics"):
        page.goto(f"{address}/{name}")
        person.look(name)
    page.goto(f"{address}/connections")
    page.locator("tbody a[data-line]").first.click()
    page.locator("svg.ladder").wait_for()
    person.look("ladder")
    page.goto(f"{address}/live")
    page.locator("#rows tr").first.wait_for()
    person.look("capture-live")


def read_commands(person, capture):
    page = person.page
    upload(page, capture)
    page.get_by_role("link", name="Commands", exact=True).click()
    page.get_by_text("Commands 1 to 16 of 16.").wait_for()
    page.locator("svg.trend").wait_for()
    person.look("commands")
    page.get_by_label("Sort by").select_option("latency")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**sort=latency**")
    slowest = page.locator("table.packets tbody a[data-line]").first.inner_text()
    check(slowest == "56", f"the slowest command is in packet {slowest}, not 56")


def page_through_many(person, short, into):
    page = person.page
    address = upload(page, write_long(short, into, 160))
    page.get_by_text("Packets 1 to 100 of 100320.").wait_for()
    for first in (101, 201, 301):
        page.locator("nav.pages a[rel=next]").first.click()
        page.get_by_text(f"Packets {first} to {first + 99} of 100320.").wait_for()
    page.get_by_label("Packet number").fill("50123")
    page.get_by_role("button", name="Go").click()
    page.get_by_role("heading", name="Packet 50123").wait_for()
    page.get_by_role("link", name="In the list").click()
    page.get_by_text("Packets 50101 to 50200 of 100320.").wait_for()
    page.get_by_role("link", name="Last").click()
    page.get_by_text("of 100320.").wait_for()
    last = page.locator("table.packets tbody tr a[data-line]").last.inner_text()
    check(last == "100320", f"the last page ends with packet {last}, not 100320")
    check(page.locator("nav.pages a[rel=next]").count() == 0, "the last page has a link to a next page")
    person.look("packets-many", narrow=False)
    page.goto(f"{address}?filter=tcp.stream%20%3D%3D%200")
    page.get_by_text("that pass").wait_for(timeout=READ)
    page.goto("/captures")
    page.locator("tr", has_text=into.name).get_by_text("Delete", exact=True).click()
    person.look("captures")
    page.locator("tr", has_text=into.name).get_by_role("button").click()
    page.wait_for_url("**/captures")
    check(into.name not in page.locator("main").inner_text(), "the deleted capture is still listed")
