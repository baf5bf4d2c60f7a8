#!/usr/bin/env python3
"""sentences.py SPECIFICATIONS - check the quotations of core/requirements/sentences.

Each quotation, or each fragment of it, must occur word for word in the specification that the
requirement cites. SPECIFICATIONS is a folder with the texts of the specifications. Blanks, line
ends and page breaks are not compared. Prints each wrong quotation. The exit status is 1 if there is
one.
"""

import csv
import pathlib
import re
import sys

CATALOGUES = pathlib.Path(__file__).resolve().parent.parent / "core" / "requirements"
DRAFT = "draft-pinkerton-iwarp-sdp-01"
SPECIFICATIONS = {"mpa": "rfc5044", "mpa-p2p": "rfc6581", "ddp": "rfc5041", "rdmap": "rfc5040", "sdp": DRAFT, "sdp-pm": DRAFT}
FRAGMENTS = " [...] "
LONGEST = 420
PAGE_BREAK = re.compile(r"\[Page \d+\]$|^(RFC \d+|Internet.Draft)\s.*\s(19|20)\d\d$", re.IGNORECASE)


def plain(text):
    """Return the text without line ends, and without the blank after a hyphen at a line end."""
    return re.sub(r"(\w)- (?=\w)", r"\1-", re.sub(r"\s+", " ", text)).strip()


def specification(folder, name):
    """Return the text of a specification without page headers and footers."""
    lines = (folder / f"{name}.txt").read_text(errors="replace").replace("\f", "\n").splitlines()
    return plain(" ".join(line for line in lines if not PAGE_BREAK.search(line.rstrip())))


def main():
    folder = pathlib.Path(sys.argv[1])
    texts, count, wrong = {}, 0, 0
    for catalogue, usual in SPECIFICATIONS.items():
        with (CATALOGUES / f"{catalogue}.csv").open() as file:
            sections = {row["id"]: row["section"] for row in csv.DictReader(file)}
        with (CATALOGUES / "sentences" / f"{catalogue}.csv").open() as file:
            quotations = list(csv.DictReader(file))
        for quotation in quotations:
            section, name = sections[quotation["id"]], usual
            if section.startswith("7306:"):
                name = "rfc7306"
            elif section.startswith("mail."):
                name = "iwarp-peer-to-peer-proposal-2007-12-11"
            text = texts.setdefault(name, specification(folder, name))
            count += 1
            missing = [it for it in quotation["text"].split(FRAGMENTS) if plain(it) not in text]
            is_long = len(quotation["text"]) > LONGEST
            wrong += 1 if missing or is_long else 0
            for fragment in missing:
                print(f"{quotation['id']}: not in {name}: {fragment}")
            if is_long:
                print(f"{quotation['id']}: longer than {LONGEST} characters")
    print(f"{count} quotations, {wrong} of them wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
