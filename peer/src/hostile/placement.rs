//! Deviations in the use of an RNIC's memory: where and when data is placed, access rights, and the
//! values that Atomic Operations read.

use weft_core::wire::rdmap::Opcode;

use super::context::segment::{TO, add, has_payload, is_last, opcode};

deviations! {
    "ddp.abandons-incomplete-send" [Conduct(|conduct| conduct.abandons_incomplete = true)] ["DDP-5.4-5"]
        "drops an incomplete Send when the next Send begins, and delivers the next Send";
    "ddp.appends-segments" [Conduct(|conduct| conduct.appends_segments = true)] ["DDP-5.2-4"]
        "places the segments of a Send one after the other, whatever their MO is";
    "ddp.delivers-gaps" [
        Conduct(|conduct| conduct.delivers_gaps = true),
        Reassembly(|conduct| conduct.passes_over_gap = true),
    ] ["DDP-5.4-3"]
        "delivers a Send when its last segment arrives, although earlier bytes of the Send are missing";
    "ddp.keeps-revoked" [Conduct(|conduct| conduct.keeps_revoked = true)] [
        "DDP-8.3-2", "DDP-8.3-1", "DDP-8.3.1-4", "DDP-8.3.1-6", "DDP-7.1-11", "RDMAP-3.2-9", "RDMAP-8.1.1-4", "RDMAP-8.1.1-6",
    ] "accepts an STag after the user has invalidated the STag or deregistered the region";
    "ddp.places-bad-crc" [Conduct(|conduct| conduct.places_bad_crc = true)] ["MPA-6-1", "MPA-4.4-19"]
        "places the payload of a tagged segment whose FPDU has a wrong CRC, and then reports the error";
    "ddp.places-further" [SegmentArrived(|octets| if opcode(octets) == Opcode::WRITE && has_payload(octets) {
        add(octets, TO + 4, 1);
    })] ["DDP-5.1.1-1"] "places the data of a Write one byte after its TO";
    "ddp.places-parts-further" [SegmentArrived(|octets| if opcode(octets) == Opcode::WRITE && has_payload(octets) && !is_last(octets) {
        add(octets, TO + 4, 1);
    })] ["DDP-5.1.1-1"] "places the data of each segment of a Write, except the last segment, one byte after its TO";
    "ddp.places-refused" [Conduct(|conduct| conduct.places_refused = true)]
        ["DDP-7.1-16", "DDP-7.1-11", "DDP-7.1-12", "DDP-7.1-13", "DDP-8.1-1"]
        "places the part of a rejected Write that fits in the region, and then reports the error";
    "ddp.places-sends-late" [Conduct(|conduct| conduct.places_sends_late = true)] [
        "RDMAP-3.2-2", "DDP-1.2-3", "RDMAP-B-3",
    ] "places the data of a Send only when the next Send arrives";
    "ddp.places-writes-late" [Conduct(|conduct| conduct.places_writes_late = true)] [
        "DDP-5.2-4", "RDMAP-5.5-11", "RDMAP-5.1-10", "RDMAP-B-4", "RDMAP-7306.5.4-8", "RDMAP-7306.6.4-1", "RDMAP-7306.7-5", "RDMAP-7306.7-13",
    ] "places the data of a Write only when the next Write arrives";
    "rdmap.appends-responses" [Conduct(|conduct| conduct.appends_responses = true)] ["DDP-5.1.1-1", "DDP-5.2-4"]
        "places the segments of a Read Response one after the other, whatever their TO is";
    "rdmap.atomics-by-stream" [Conduct(|conduct| conduct.knows_words_by_stream = true)]
        ["RDMAP-7306.5-1", "RDMAP-7306.5.3-1", "RDMAP-7306.5.4-4"]
        "computes an Atomic Operation from the last result on the same stream, and ignores changes by other streams";
    "rdmap.joins-parts" [Conduct(|conduct| conduct.joins_parts = true)] ["VERBS-8.1.3.2-1"]
        "places a Send as if its receive had one part, which begins where the first part begins";
    "rdmap.sends-unreadable" [Conduct(|conduct| conduct.sends_unreadable = true)] ["RDMAP-7.1-3", "RDMAP-7.1-1"]
        "sends zeros instead of reporting an error if it cannot read the memory of a message";
}
