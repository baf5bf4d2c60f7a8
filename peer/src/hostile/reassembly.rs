//! Deviations in the TCP of the target: which bytes of TCP segments it passes to MPA, when it passes
//! them, which bytes it sends if the tester's window is small, and which connections it serves.
//! These deviations have an effect only on the virtual link, where the tester can choose its TCP
//! segments.

deviations! {
    "mpa.begins-with-first-arrival" [Reassembly(|conduct| conduct.begins_with_first_arrival = true)] ["MPA-7.1.5-4"]
        "takes the first TCP segment that arrives as the beginning of the stream, whatever its sequence number is";
    "mpa.changes-byte-at-small-window" [Reassembly(|conduct| conduct.changes_rest = true)]
        ["DDP-5.2-4", "RDMAP-5.2.1-18"]
        "changes a byte if its peer's window opens by fewer bytes than it has to send";
    "mpa.loses-bytes-after-wrap" [Reassembly(|conduct| conduct.loses_after_wrap = true)] ["MPA-4.3-6"]
        "loses all bytes after TCP's sequence number has wrapped to 0";
    "mpa.loses-ip-fragments" [Reassembly(|conduct| conduct.loses_fragments = true)] ["MPA-A.5.1-2"]
        "loses a TCP segment that IP fragments carry";
    "mpa.passes-duplicate" [Reassembly(|conduct| conduct.passes_duplicates = true)] ["DDP-3-12", "MPA-A.3-1"]
        "processes the bytes of a retransmitted TCP segment again, although it has already processed them";
    "mpa.passes-over-gap" [Reassembly(|conduct| conduct.passes_over_gap = true)]
        ["MPA-6-5", "MPA-7.1.5-4", "DDP-5.4-4", "RDMAP-5.5-9", "RDMAP-7306.5.4-6", "RDMAP-3.1-11"]
        "processes the bytes of a TCP segment as soon as it arrives, although earlier bytes are missing";
    "rdmap.blocks-other-connections" [Reassembly(|conduct| conduct.blocks_others = true)] ["RDMAP-5.3-5"]
        "serves no other connection while its peer does not read what it has sent on one connection";
    "rdmap.loses-later-connections" [Reassembly(|conduct| conduct.loses_later_connections = true)] ["RDMAP-5.3-5", "RDMAP-5.2.1-18"]
        "receives no bytes on any connection after its first 100 connections";
}
