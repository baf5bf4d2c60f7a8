//! The adapter of NVMe over RDMA. A command capsule begins a command, and the response capsule with
//! the same CID ends it.

use super::super::command::DataFlow;
use super::super::event::{Begin, Buffer, End, IoEvent};
use crate::upper::nvme::{
    CONNECT, Command, Completion, GET_FEATURES, GET_LOG_PAGE, IDENTIFY, Message, PROPERTY_GET, PROPERTY_SET,
    SET_FEATURES, names,
};

/// Adds what `message` means to `events`.
pub(super) fn read(message: &Message, events: &mut Vec<IoEvent>) {
    match message {
        Message::Command(command) => events.push(IoEvent::Begin(begin(command))),
        Message::Response(completion) => events.push(IoEvent::End(end(completion))),
        Message::ConnectData => {}
    }
}

fn begin(command: &Command) -> Begin {
    let sgl = command.sgl;
    let (is_inline, len) = (sgl.is_in_capsule(), u64::from(sgl.len));
    let expected_bytes = if is_inline || sgl.key.is_some() { len } else { 0 };
    let keyed = sgl.key.filter(|_| !is_inline && len > 0);
    Begin {
        id: command.command_id.into(),
        queue: command.queue.map(u64::from),
        kind: command.code().name(),
        parameters: parameters(command),
        flow: flow(command, expected_bytes),
        expected_bytes,
        inline_bytes: if is_inline { len.min(command.data_len().into()) } else { 0 },
        buffers: keyed.into_iter().map(|stag| Buffer { stag, offset: sgl.address, len }).collect(),
        // The descriptor can point to a list of further descriptors in the capsule.
        has_unknown_buffers: !is_inline && sgl.key.is_none() && len > 0,
    }
}

fn end(completion: &Completion) -> End {
    let status = completion.status;
    let name = completion.status_name().map(str::to_owned);
    let mut text = name.unwrap_or_else(|| format!("status type {} code {:#04x}", status.code_type(), status.code()));
    if status.is_final() {
        text.push_str(", do not retry");
    }
    End {
        id: completion.command_id.into(),
        queue: completion.queue.map(u64::from),
        status: text,
        is_error: !status.is_success(),
        inline_bytes: 0,
    }
}

/// The direction of the data. The low bits of an opcode, or of the type of a Fabrics command, have
/// it.
fn flow(command: &Command, expected_bytes: u64) -> DataFlow {
    match command.fabrics_type().unwrap_or(command.opcode) & 0b11 {
        _ if expected_bytes == 0 => DataFlow::None,
        0b01 => DataFlow::ToTarget,
        0b10 => DataFlow::FromTarget,
        0b11 => DataFlow::Both,
        _ => DataFlow::None,
    }
}

/// The parameters of a command. The name of a value replaces the value, if it has a name.
fn parameters(command: &Command) -> String {
    let named = |what: &str, value: u32, name: Option<&str>| match name {
        Some(name) => format!("{what} {name}"),
        None => format!("{what} {value:#04x}"),
    };
    let [first, second, third, fourth, ..] = command.dwords;
    let low = first & 0xff;
    if let Some(kind) = command.fabrics_type() {
        let property = || named("property", second, names::property(second.into()));
        return match kind {
            CONNECT => format!("qid {} sqsize {}", first >> 16, second & 0xffff),
            PROPERTY_GET => property(),
            PROPERTY_SET => format!("{} value {:#x}", property(), u64::from(fourth) << 32 | u64::from(third)),
            _ => String::new(),
        };
    }
    let namespace = match command.namespace {
        0 => None,
        u32::MAX => Some("nsid all".to_owned()),
        number => Some(format!("nsid {number}")),
    };
    let detail = if let Some((lba, count)) = command.blocks() {
        Some(format!("lba {lba} blocks {count}"))
    } else if command.is_admin(IDENTIFY) {
        Some(named("cns", low, names::cns(low.into())))
    } else if command.is_admin(GET_LOG_PAGE) {
        Some(named("page", low, names::log_page(low.into())))
    } else if command.is_admin(SET_FEATURES) || command.is_admin(GET_FEATURES) {
        Some(named("feature", low, names::feature(low.into())))
    } else if command.queue_kind.is_none() {
        Some(format!("opcode {:#04x}", command.opcode))
    } else {
        None
    };
    namespace.into_iter().chain(detail).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use crate::upper::nvme::QueueKind;

    /// Reads an entry for a queue. `sgl` and `dwords` are the bytes 24 to 39 and 40 to 63.
    fn command(queue: u16, head: &str, sgl: &str, dwords: &str, data: usize) -> Begin {
        let mut entry = hex(head);
        entry.resize(24, 0);
        entry.extend(hex(sgl));
        entry.resize(40, 0);
        entry.extend(hex(dwords));
        entry.resize(64 + data, 0);
        let mut command = Command::parse(&entry).unwrap();
        (command.queue, command.queue_kind) = (Some(queue), Some(QueueKind::of(queue)));
        begin(&command)
    }

    const NO_DATA: &str = "0000000000000000 000000 00000000 40";

    /// The entries of frames 469, 220 and 12 of a capture of Linux (nvme-rdma, kernel 6.1).
    #[test]
    fn a_command_has_its_parameters_and_its_buffer() {
        let read = command(1, "0240 0900 01000000", "0060160980 88ffff 000001 0966a36b 4f", "80000000 00000000 7f", 0);
        assert_eq!((read.id, read.queue, read.kind), (9, Some(1), "Read"));
        assert_eq!((&read.parameters[..], read.flow), ("nsid 1 lba 128 blocks 128", DataFlow::FromTarget));
        assert_eq!((read.expected_bytes, read.inline_bytes), (65536, 0));
        assert_eq!(read.buffers, [Buffer { stag: 0x6ba3_6609, offset: 0xffff_8880_0916_6000, len: 65536 }]);
        let write = command(1, "0140 0b00 01000000", "0000000000000000 00020000 000000 01", "08", 512);
        assert_eq!((&write.parameters[..], write.flow), ("nsid 1 lba 8 blocks 1", DataFlow::ToTarget));
        assert_eq!((write.expected_bytes, write.inline_bytes, write.buffers), (512, 512, Vec::new()));
        let get = command(0, "7f40 0100 04", NO_DATA, "01", 0);
        assert_eq!((get.kind, &get.parameters[..]), ("Property Get", "property Controller Capabilities"));
        assert_eq!((get.flow, get.buffers), (DataFlow::None, Vec::new()));
    }

    #[test]
    fn parameters_of_admin_and_fabrics_commands_have_names() {
        let parameters = |head: &str, dwords: &str| command(0, head, NO_DATA, dwords, 0).parameters;
        assert_eq!(parameters("7f40 0000 01", "00000100 1f00"), "qid 1 sqsize 31");
        assert_eq!(
            parameters("7f40 0010 00", "00000000 14000000 60004600"),
            "property Controller Configuration value 0x460060"
        );
        assert_eq!(parameters("0640 0200", "01"), "cns Controller");
        assert_eq!(parameters("0640 0200 01000000", "ee"), "nsid 1 cns 0xee");
        assert_eq!(parameters("0240 0500 ffffffff", "0280ff"), "nsid all page SMART / Health Information");
        assert_eq!(parameters("0940 0300", "0b"), "feature Asynchronous Event Configuration");
        assert_eq!(parameters("0c40 1f00", ""), "");
    }

    #[test]
    fn a_status_is_an_error_unless_it_is_zero() {
        let end = |capsule: &str| end(&Completion::parse(&hex(capsule)).unwrap());
        let good = end("0000000000000000 0100 0000 0900 0000");
        assert_eq!((good.id, good.is_error, &good.status[..]), (9, false, "Successful Completion"));
        let failed = end("0000000000000000 1200 0000 1710 02c0");
        assert_eq!((failed.id, failed.is_error), (0x1017, true));
        assert_eq!(failed.status, "Invalid Command Opcode, do not retry");
    }
}
