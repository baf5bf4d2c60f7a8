//! Checks RDMA messages and their DDP messages. Each RDMA message must be one DDP message. Messages
//! must keep the order of their queue, and all segments of a message must have the same RDMAP
//! fields.

use weft_core::wire::rdmap::Opcode;

use crate::follow::{ConnectionState, Remark, RemarkKind};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static SAME: Rule = Check::Remark(same).covers(requirements![
    "RDMAP-3.1-3",
    "RDMAP-3.1-9",
    "RDMAP-5.1-11",
    "RDMAP-5.2.2-14",
    "RDMAP-5.3-19"
]);

pub(super) static ORDER: Rule = Check::Remark(order).covers(requirements![
    "RDMAP-5.2.1-13",
    "RDMAP-5.3-16",
    "RDMAP-5.5-15",
    "RDMAP-7306.5.2.1-19",
    "RDMAP-7306.6.3-10"
]);

fn same(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    match remark.kind {
        RemarkKind::UlpChanged { tagged, from, to } => {
            let (expected, found) = (format!("{:02x} {:08x}", from.0, from.1), format!("{:02x} {:08x}", to.0, to.1));
            let expected = format!("RDMAP's bytes {expected}, as in the earlier segments");
            findings.report_remark(requirements!["RDMAP-3.1-9"], unit, remark, &expected, &found);
            if Opcode(from.0 & 0xf) != Opcode(to.0 & 0xf) {
                let expected = format!("{} in all segments up to the segment with L=1", Opcode(from.0 & 0xf));
                let found = Opcode(to.0 & 0xf).to_string();
                findings.report_remark(requirements!["RDMAP-3.1-3"], unit, remark, &expected, &found);
            }
            if !tagged && Opcode(from.0 & 0xf).invalidates() {
                let expected = format!(
                    "Invalidate STag {:#010x} in a {}, as in the earlier segments",
                    from.1,
                    Opcode(from.0 & 0xf)
                );
                let found = format!("{:#010x} in a {}", to.1, Opcode(to.0 & 0xf));
                findings.report_remark(requirements!["RDMAP-5.3-19"], unit, remark, &expected, &found);
            }
        }
        RemarkKind::StagChanged { opcode, from, to } => {
            let of_write = requirements!["RDMAP-5.1-11"];
            let ids = if opcode == Opcode::WRITE { of_write } else { requirements!["RDMAP-5.2.2-14"] };
            let expected = format!("STag {from:#010x} in all segments of the {opcode}");
            let found = format!("STag {to:#010x}");
            findings.report_remark(ids, unit, remark, &expected, &found);
        }
        _ => {}
    }
}

fn order(_: &ConnectionState, unit: &Unit<'_>, remark: &Remark, findings: &mut Findings<'_>) {
    let RemarkKind::MsnOutOfOrder { opcode, queue, found } = remark.kind else { return };
    let of_opcode = match opcode {
        Opcode::READ_REQUEST => requirements!["RDMAP-5.2.1-13"],
        Opcode::ATOMIC_REQUEST => requirements!["RDMAP-7306.5.2.1-19"],
        Opcode::IMMEDIATE | Opcode::IMMEDIATE_SE => requirements!["RDMAP-7306.6.3-10"],
        opcode if opcode.is_send() => requirements!["RDMAP-5.3-16"],
        _ => &[],
    };
    let expected = format!("{opcode} messages in the order of their MSNs");
    let found = format!("MSN {found} on queue {queue} after a higher MSN");
    for ids in [of_opcode, requirements!["RDMAP-5.5-15"]] {
        findings.report_remark(ids, unit, remark, &expected, &found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{Wire, exchange, proves};

    fn forth(ulpdus: &[&str]) -> Wire {
        let all: Vec<(usize, &str)> = ulpdus.iter().map(|ulpdu| (0, *ulpdu)).collect();
        exchange(&all)
    }

    #[test]
    fn all_segments_are_of_one_message() {
        let first = "0144 00000100 00000000 00000001 00000000 01020304";
        let second = "4144 00000100 00000000 00000001 00000004 05060708";
        let right = forth(&[first, second]);
        let with = |octets: &str| forth(&[first, &second.replacen("44 00000100", octets, 1)]);
        proves(requirement!("RDMAP-3.1-3"), &with("46 00000100"), &right);
        proves(requirement!("RDMAP-3.1-9"), &with("54 00000100"), &right);
        proves(requirement!("RDMAP-5.3-19"), &with("44 00000101"), &right);

        let write = ["8140 11223344 0000000000001000 01020304", "c140 11223344 0000000000001004 05060708"];
        let other = "c140 11223355 0000000000001004 05060708";
        proves(requirement!("RDMAP-5.1-11"), &forth(&[write[0], other]), &forth(&write));
        let read = "4141 00000000 00000001 00000001 00000000
            00000100 0000000000001000 00000008 00000200 0000000000002000";
        let answered = |stag: &str| {
            exchange(&[
                (0, read),
                (1, "8142 00000100 0000000000001000 01020304"),
                (1, &format!("c142 {stag} 0000000000001004 05060708")),
            ])
        };
        proves(requirement!("RDMAP-5.2.2-14"), &answered("00000101"), &answered("00000100"));
    }

    /// Messages with MSN 1, 3 and 2, in this order.
    fn late(of: impl Fn(u32) -> String) -> Wire {
        forth(&[&of(1), &of(3), &of(2)])
    }
    fn in_order(of: impl Fn(u32) -> String) -> Wire {
        forth(&[&of(1), &of(2), &of(3)])
    }

    #[test]
    fn messages_go_out_in_order() {
        let send = |msn: u32| format!("4143 00000000 00000000 {msn:08x} 00000000 2a");
        proves(requirement!("RDMAP-5.3-16"), &late(send), &in_order(send));
        let read = |msn: u32| {
            format!(
                "4141 00000000 00000001 {msn:08x} 00000000
                00000100 0000000000001000 00000008 00000200 0000000000002000"
            )
        };
        proves(requirement!("RDMAP-5.2.1-13"), &late(read), &in_order(read));
        let atomic = |msn: u32| {
            format!(
                "414a 00000000 00000001 {msn:08x} 00000000 00000000 {msn:08x} 00000200 0000000000002000
                0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff"
            )
        };
        proves(requirement!("RDMAP-7306.5.2.1-19"), &late(atomic), &in_order(atomic));
        let immediate = |msn: u32| format!("4148 00000000 00000000 {msn:08x} 00000000 0123456789abcdef");
        proves(requirement!("RDMAP-7306.6.3-10"), &late(immediate), &in_order(immediate));
        let solicited = |msn: u32| format!("4145 00000000 00000000 {msn:08x} 00000000 2a");
        proves(requirement!("RDMAP-5.5-15"), &late(solicited), &in_order(solicited));
    }
}
