#!/usr/bin/env python3
"""Write the captures of this folder and `truth.json`: make.py [OUTDIR]

The encoder has no code of weft. The output has the same bytes in each run.
"""
import json
import os
import sys

sys.dont_write_bytecode = True

from gen import vectors  # noqa: E402
from gen.scene import SCENES, Scene  # noqa: E402
from scenes import memory, messages, network, sdp, startup, views  # noqa: E402,F401

LIMIT = 60_000


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    vectors.check()
    entries = []
    for name, story, at, options, function in sorted(SCENES, key=lambda entry: entry[0]):
        s = Scene(name, story, at, **options)
        function(s)
        data = s.capture.pcapng() if s.pcapng else s.capture.pcap()
        assert len(data) < LIMIT, (name, len(data))
        with open(os.path.join(out, s.entry["file"]), "wb") as file:
            file.write(data)
        s.entry["frames"] = len(s.capture.frames)
        entries.append(s.entry)
    with open(os.path.join(out, "truth.json"), "w", encoding="utf-8") as file:
        json.dump({"version": 1, "captures": entries}, file, indent=1, ensure_ascii=True)
        file.write("\n")


if __name__ == "__main__":
    main()
