//! Lists the deviations (named faults of an endpoint) that are visible only in a reaction. Each
//! entry has the action, and how the deviation becomes visible.

use crate::hostile::run::Script;
use crate::hostile::traffic::Wrong;

/// How the deviation becomes visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The monitor reports a finding.
    Monitor,
    /// A correct end sends a Terminate with this code, as 0xLTCC (layer, type, code). The deviating
    /// end does not send it.
    Terminates(u16),
    /// The deviating end sends a Terminate with this code. A correct end sends no Terminate.
    GoesOn(u16),
    /// The other end is correct, and rejects with a Terminate with this code.
    Refused(u16),
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The deviating end.
    pub(crate) end: usize,
    pub(crate) script: Script,
    /// The deviation of the other end that makes this deviation visible. Empty if the other end is
    /// correct.
    pub(crate) provoked_by: &'static str,
    pub(crate) shows: Shows,
}

macro_rules! cases {
    ($($name:literal $end:literal $script:expr, $by:literal => $shows:expr;)+) => {
        pub(crate) const CASES: &[Case] =
            &[$(Case { name: $name, end: $end, script: $script, provoked_by: $by, shows: $shows }),+];
    };
}

const TRAFFIC: Script = None;

const fn wrong(wrong: Wrong) -> Script {
    Some(wrong)
}

cases! {
    "ddp.checks-empty-write" 0 TRAFFIC, "" => Shows::GoesOn(0x1100);
    "ddp.delivers-without-last" 0 TRAFFIC, "" => Shows::GoesOn(0x1202);
    "ddp.needs-a-receive" 1 wrong(Wrong::EarlyRead), "" => Shows::GoesOn(0x1202);
    "ddp.other-code" 1 wrong(Wrong::WriteStag), "" => Shows::Terminates(0x1100);
    "ddp.overlooks-association" 1 wrong(Wrong::WritePd), "" => Shows::Terminates(0x1102);
    "ddp.overlooks-bounds" 1 wrong(Wrong::WriteBounds), "" => Shows::Terminates(0x1101);
    "ddp.overlooks-long-send" 1 wrong(Wrong::LongSend), "" => Shows::Terminates(0x1205);
    "ddp.overlooks-missing-buffer" 1 wrong(Wrong::NoReceive), "" => Shows::Terminates(0x1202);
    "ddp.overlooks-mo" 1 TRAFFIC, "ddp.begins-with-mo-4" => Shows::Terminates(0x1204);
    "ddp.overlooks-msn" 1 TRAFFIC, "rdmap.requests-swapped" => Shows::Terminates(0x1203);
    "ddp.overlooks-queue-number" 1 TRAFFIC, "ddp.unknown-queue" => Shows::Terminates(0x1201);
    "ddp.overlooks-rights" 1 wrong(Wrong::WriteRights), "" => Shows::Terminates(0x1102);
    "ddp.overlooks-stag" 1 wrong(Wrong::WriteStag), "" => Shows::Terminates(0x1100);
    "ddp.overlooks-version" 1 TRAFFIC, "ddp.version-2" => Shows::Terminates(0x1206);
    "ddp.overlooks-wrap" 1 wrong(Wrong::WriteWrap), "" => Shows::Terminates(0x1103);
    "ddp.refuses-later-segments" 0 TRAFFIC, "" => Shows::GoesOn(0x1204);
    "ddp.refuses-odd-to" 0 TRAFFIC, "" => Shows::GoesOn(0x1103);
    "ddp.refuses-reserved-bits" 1 TRAFFIC, "ddp.reserved-bits" => Shows::GoesOn(0x1206);
    "ddp.refuses-second-write" 0 TRAFFIC, "" => Shows::GoesOn(0x1102);
    "ddp.resets-at-once" 1 wrong(Wrong::WriteStag), "" => Shows::Terminates(0x1100);
    "ddp.takes-mo-of-16-bits" 1 TRAFFIC, "ddp.begins-with-mo-65536" => Shows::Terminates(0x1204);
    "ddp.untagged-version-as-tagged" 1 TRAFFIC, "ddp.version-2" => Shows::Monitor;
    "rdmap.aligns-atomics" 1 TRAFFIC, "rdmap.atomic-misaligned" => Shows::Terminates(0x0207);
    "rdmap.atomic-misaligned" 0 TRAFFIC, "" => Shows::Refused(0x0207);
    "rdmap.atomic-response-unrequested" 0 TRAFFIC, "" => Shows::Refused(0x02ff);
    "rdmap.checks-empty-read" 0 TRAFFIC, "" => Shows::GoesOn(0x0100);
    "rdmap.forgets-invalidate-of-long-sends" 1 TRAFFIC, "ddp.writes-to-invalidated-stag" => Shows::Terminates(0x1100);
    "rdmap.holds-one-read-less" 0 TRAFFIC, "" => Shows::Monitor;
    "rdmap.one-read" 0 TRAFFIC, "" => Shows::GoesOn(0x1203);
    "rdmap.other-operation-code" 1 TRAFFIC, "rdmap.reserved-opcode" => Shows::Terminates(0x0206);
    "rdmap.other-protection-code" 1 wrong(Wrong::ReadStag), "" => Shows::Terminates(0x0100);
    "rdmap.overlooks-atomic-opcode" 1 TRAFFIC, "rdmap.atomic-request-opcode-1" => Shows::Terminates(0x02ff);
    "rdmap.overlooks-atomic-response" 1 TRAFFIC, "rdmap.atomic-response-cut" => Shows::Terminates(0x02ff);
    "rdmap.overlooks-immediate-size" 1 TRAFFIC, "rdmap.immediate-cut" => Shows::Terminates(0x02ff);
    "rdmap.overlooks-invalidate" 1 wrong(Wrong::Invalidate), "" => Shows::Terminates(0x0100);
    "rdmap.overlooks-opcode" 1 TRAFFIC, "rdmap.reserved-opcode" => Shows::Terminates(0x0206);
    "rdmap.overlooks-read-association" 1 wrong(Wrong::ReadPd), "" => Shows::Terminates(0x0103);
    "rdmap.overlooks-read-bounds" 1 wrong(Wrong::ReadBounds), "" => Shows::Terminates(0x0101);
    "rdmap.overlooks-read-response" 1 TRAFFIC, "rdmap.response-stag" => Shows::Terminates(0x1100);
    "rdmap.overlooks-read-rights" 1 wrong(Wrong::ReadRights), "" => Shows::Terminates(0x0102);
    "rdmap.overlooks-read-stag" 1 wrong(Wrong::ReadStag), "" => Shows::Terminates(0x0100);
    "rdmap.overlooks-read-wrap" 1 wrong(Wrong::ReadWrap), "" => Shows::Terminates(0x0104);
    "rdmap.overlooks-request-size" 1 TRAFFIC, "rdmap.request-cut" => Shows::Terminates(0x1000);
    "rdmap.overlooks-terminate" 0 wrong(Wrong::WriteStag), "rdmap.terminate-msn-2" => Shows::Terminates(0x1203);
    "rdmap.overlooks-too-many-reads" 1 TRAFFIC, "rdmap.reads-beyond-ord" => Shows::Terminates(0x1203);
    "rdmap.overlooks-version" 1 TRAFFIC, "rdmap.version-0" => Shows::Terminates(0x0205);
    "rdmap.refuses-atomic-responses" 0 TRAFFIC, "" => Shows::GoesOn(0x1202);
    "rdmap.refuses-cmp-swap" 0 TRAFFIC, "" => Shows::GoesOn(0x02ff);
    "rdmap.refuses-extension-word" 1 TRAFFIC, "rdmap.extension-word-not-zero" => Shows::GoesOn(0x0206);
    "rdmap.refuses-middle" 0 TRAFFIC, "" => Shows::GoesOn(0x1101);
    "rdmap.refuses-odd-request" 0 TRAFFIC, "" => Shows::GoesOn(0x0104);
    "rdmap.refuses-reserved-bits" 1 TRAFFIC, "rdmap.reserved-bits" => Shows::GoesOn(0x0205);
    "rdmap.refuses-terminate-reserved" 0 wrong(Wrong::WriteStag), "rdmap.terminate-reserved-bits" => Shows::GoesOn(0x02ff);
    "rdmap.refuses-word" 1 TRAFFIC, "rdmap.word-not-zero" => Shows::GoesOn(0x0206);
    "rdmap.request-fields-swapped" 0 TRAFFIC, "" => Shows::Refused(0x0100);
    "rdmap.request-little-endian" 0 TRAFFIC, "" => Shows::Refused(0x0101);
    "rdmap.serves-version-0" 1 TRAFFIC, "rdmap.request-version-0" => Shows::Terminates(0x0205);
    "rdmap.skips-terminate" 1 wrong(Wrong::WriteStag), "" => Shows::Terminates(0x1100);
    "rdmap.takes-more-reads" 1 TRAFFIC, "rdmap.reads-beyond-ord" => Shows::Terminates(0x1203);
    "rdmap.reports-second-error" 1 TRAFFIC, "rdmap.reserved-opcode" => Shows::Monitor;
    "rdmap.write-as-response" 0 TRAFFIC, "" => Shows::Refused(0x0206);
}
