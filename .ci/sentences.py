#!/usr/bin/env python3
"""sentences.py SPECIFICATIONS - check the quotations of core/requirements/sentences.

Each quotation, or each fragment of it, must occur word for word in the specification that the
requirement cites. The fragments of a quotation must have the order of the specification. For an
RFC, they must occur in the cited section or its subsections. (The headings of the other texts
cannot be found reliably.) SPECIFICATIONS is a folder with the texts of the specifications. Blanks,
line ends and page breaks are not compared. Prints each wrong quotation. The exit status is 1 if
there is one.
"""

import csv
import functools
import pathlib
import re
import sys

CATALOGUES = pathlib.Path(__file__).resolve().parent.parent / "core" / "requirements"
DRAFT = "draft-pinkerton-iwarp-sdp-01"
SPECIFICATIONS = {"mpa": "rfc5044", "mpa-p2p": "rfc6581", "ddp": "rfc5041", "rdmap": "rfc5040", "sdp": DRAFT, "sdp-pm": DRAFT, "iser": "rfc7145", "rpcrdma": "rfc8166"}
FRAGMENTS = " [...] "
LONGEST = 420
# "7.1.1.  Title" or "Appendix A.  Title". In tables of contents, such lines are indented.
HEADING = re.compile(r"(?:Appendix )?((?:\d+|[A-Z])(?:\.\d+)*)\.? +\S")
PAGE_BREAK = re.compile(r"\[Page \d+\]$|^(RFC \d+|Internet.Draft)\s.*\s(19|20)\d\d$", re.IGNORECASE)


def plain(text):
    """Return the text without line ends, and without the blank after a hyphen at a line end."""
    return re.sub(r"(\w)- (?=\w)", r"\1-", re.sub(r"\s+", " ", text)).strip()


@functools.cache
def specification(folder, name):
    """Return the lines of a specification without page headers and footers."""
    lines = (folder / f"{name}.txt").read_text(errors="replace").replace("\f", "\n").splitlines()
    return [line for line in lines if not PAGE_BREAK.search(line.rstrip())]


@functools.cache
def text_of(folder, name, section=None):
    """Return the text of a specification, or of one section of it with its subsections."""
    number, lines = "", []
    for line in specification(folder, name):
        heading = HEADING.match(line)
        number = heading[1] if heading else number
        if section is None or f"{number}.".startswith(f"{section}."):
            lines.append(line)
    return plain(" ".join(lines))


def has_in_order(text, fragments):
    """Return whether the text has the fragments in this order."""
    return re.search(".*".join(re.escape(it) for it in fragments), text) is not None


def problems_of(quotation, folder, name, section):
    """Return what is wrong with the text of a quotation."""
    fragments = [plain(it) for it in quotation.split(FRAGMENTS)]
    text = text_of(folder, name)
    problems = [f"not in {name}: {it}" for it in fragments if it not in text]
    if not problems and not has_in_order(text, fragments):
        problems.append(f"the fragments have another order in {name}")
    elif not problems and name.startswith("rfc") and not has_in_order(text_of(folder, name, section), fragments):
        problems.append(f"not in section {section} of {name}")
    if len(quotation) > LONGEST:
        problems.append(f"longer than {LONGEST} characters")
    return problems


def main():
    folder = pathlib.Path(sys.argv[1])
    count, wrong = 0, 0
    for catalogue, usual in SPECIFICATIONS.items():
        with (CATALOGUES / f"{catalogue}.csv").open() as file:
            sections = {row["id"]: row["section"] for row in csv.DictReader(file)}
        with (CATALOGUES / "sentences" / f"{catalogue}.csv").open() as file:
            quotations = list(csv.DictReader(file))
        for quotation in quotations:
            section, name = sections[quotation["id"]], usual
            if section.startswith("7306:"):
                name, section = "rfc7306", section.removeprefix("7306:")
            elif section.startswith(("7143:", "8167:", "8797:")):
                rfc, section = section.split(":", 1)
                name = f"rfc{rfc}"
            elif section.startswith("mail."):
                name = "iwarp-peer-to-peer-proposal-2007-12-11"
            problems = problems_of(quotation["text"], folder, name, section)
            count += 1
            wrong += 1 if problems else 0
            for problem in problems:
                print(f"{quotation['id']}: {problem}")
    print(f"{count} quotations, {wrong} of them wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
