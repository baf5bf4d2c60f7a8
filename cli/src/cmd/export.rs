//! `weft export`: converts the messages above RDMAP to a capture for Wireshark.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::Dissector;
use weft_dissector::link_type::WIRESHARK_UPPER_PDU;
use weft_dissector::output::text::counted;
use weft_dissector::output::upper_pdu::{Omitted, UpperPdu, UpperPdus};
use weft_dissector::output::{pcap, pcapng};

use crate::exit::{BadInput, note, reject, unwritable};
use crate::input::{DecodeAs, Input, refuse_same};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "weft exports these messages:\n  \
    RPC-over-RDMA    RPC calls and replies, such as NFS, with the data of Read and Write chunks\n  \
    SMB Direct       SMB2 messages, joined from their fragments\n  \
    NVMe over RDMA   command and response capsules, re-framed as PDUs of NVMe/TCP\n  \
    iSER             iSCSI PDUs, without the iSER header\n\n\
    A message ends before its first byte that was not captured. A packet comment explains this, and\n\
    also which bytes RDMA transferred separately. For NVMe and iSER, these bytes are not exported.\n\n\
    Examples:\n  \
    weft export --upper-pdu capture.pcap messages.pcapng         write the messages\n  \
    weft export --upper-pdu capture.pcap - | wireshark -k -i -   show the messages in Wireshark")]
pub(crate) struct Arguments {
    /// Write each message of a protocol above RDMAP as one packet
    ///
    /// Wireshark 4.0 and later decodes the packets with its own dissectors, such as NFS, SMB2 and
    /// iSCSI. A packet has the addresses and ports of its message, and the time of the message's
    /// last frame. The link type is LINKTYPE_WIRESHARK_UPPER_PDU.
    #[arg(long)]
    upper_pdu: bool,
    /// Read this capture; use - for standard input
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Write a pcapng, or a pcap if the name ends with .pcap; use - for standard output
    ///
    /// pcap has no packet comments.
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    decode: DecodeAs,
}

/// Reads the capture and writes the messages.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { upper_pdu, from, to, force, decode } = arguments;
    if !upper_pdu {
        reject!("missing format: use `weft export --upper-pdu IN OUT`");
    }
    let is_standard_output = to == Path::new("-");
    refuse_same(from, to)?;
    if is_standard_output && io::stdout().is_terminal() {
        reject!("refusing to write a capture to a terminal; redirect the output or name a file");
    }
    if !is_standard_output && !force && to.exists() {
        reject!("{}: the file exists; to replace it, add --force", to.display());
    }
    let input = Input::open(from)?;
    let name = input.name().to_owned();
    let fault = |error: &io::Error| BadInput(format!("{}: {}", to.display(), unwritable(to, error)));
    let mut output = Output::create(to).map_err(|error| fault(&error))?;
    let mut counts = Counts::default();
    let failed = RefCell::new(Ok(()));
    let mut sink = UpperPdus::new(|pdu: &UpperPdu| {
        let mut failed = failed.borrow_mut();
        if failed.is_ok() {
            counts.count(pdu);
            *failed = output.pdu(pdu);
        }
    });
    let dissector = decode.apply(Dissector::default());
    input.dissect_until(dissector, &mut sink, || failed.borrow().is_err())?;
    sink.finish();
    let omitted = sink.omitted();
    drop(sink);
    failed.into_inner()?;
    let has_comments = output.has_comments();
    output.finish()?;
    note(&format!("{name}: {}{}", counts.summary(to, has_comments), omitted_text(&omitted)));
    Ok(ExitCode::SUCCESS)
}

/// The written capture.
enum Output {
    Pcapng {
        writer: pcapng::Writer<BufWriter<Box<dyn Write>>>,
        /// The number of the only interface.
        interface: u32,
    },
    Pcap(pcap::Writer<BufWriter<Box<dyn Write>>>),
}

impl Output {
    fn create(path: &Path) -> io::Result<Self> {
        let out: Box<dyn Write> =
            if path == Path::new("-") { Box::new(io::stdout()) } else { Box::new(File::create(path)?) };
        let out = BufWriter::with_capacity(1 << 16, out);
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pcap")) {
            return Ok(Output::Pcap(pcap::Writer::new(out, WIRESHARK_UPPER_PDU)?));
        }
        let comment = "Messages above RDMAP, exported by weft; the packets have the tags of Wireshark.";
        let mut writer = pcapng::Writer::new(out, Some(comment))?;
        let interface = pcapng::Interface { link_type: WIRESHARK_UPPER_PDU, ..pcapng::Interface::default() };
        let interface = writer.interface(&interface)?;
        Ok(Output::Pcapng { writer, interface })
    }

    fn has_comments(&self) -> bool {
        matches!(self, Output::Pcapng { .. })
    }

    fn pdu(&mut self, pdu: &UpperPdu) -> io::Result<()> {
        let octets = &pdu.packet();
        let (time, wire_len, comments) = (pdu.time, pdu.wire_len(octets), &pdu.remarks);
        match self {
            Output::Pcapng { writer, interface } => {
                let interface = *interface;
                writer.packet(&pcapng::PacketBlock { interface, time, octets, wire_len, direction: None, comments })
            }
            Output::Pcap(writer) => writer.packet(time, octets, wire_len),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Output::Pcapng { writer, .. } => writer.finish().map(drop),
            Output::Pcap(writer) => writer.finish().map(drop),
        }
    }
}

/// The numbers of written messages.
#[derive(Default)]
struct Counts {
    /// By the name of the dissector.
    messages: BTreeMap<&'static str, u64>,
    /// Number of messages without all of their bytes.
    cut: u64,
    /// Number of messages with a remark.
    with_remarks: u64,
}

impl Counts {
    fn count(&mut self, pdu: &UpperPdu) {
        *self.messages.entry(pdu.dissector.name()).or_default() += 1;
        self.cut += u64::from(pdu.len > pdu.octets.len() as u64);
        self.with_remarks += u64::from(!pdu.remarks.is_empty());
    }

    fn summary(&self, to: &Path, has_comments: bool) -> String {
        if self.messages.is_empty() {
            return "no message to export; weft exports RPC-over-RDMA, SMB Direct, NVMe over RDMA and iSER".to_owned();
        }
        let total = counted(self.messages.values().sum(), "message");
        let each: Vec<String> = self.messages.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let mut text = format!("{total} written to {} ({}), {} incomplete", to.display(), each.join(", "), self.cut);
        if !has_comments && self.with_remarks > 0 {
            let remarks = counted(self.with_remarks, "message");
            text.push_str(&format!("; pcap has no comments for {remarks} with remarks, so use a name with .pcapng"));
        }
        text
    }
}

/// What is missing in the written capture; empty if nothing is missing.
fn omitted_text(omitted: &Omitted) -> String {
    let Omitted { parts, sends, cut, reads, data } = *omitted;
    let mut text = String::new();
    if parts > 0 {
        text = format!("; {} without the start of a message not written", counted(parts, "fragment"));
    }
    if omitted.has_reached_limit() {
        let dropped = [(sends, "Send"), (reads, "Read Request"), (data, "byte")];
        let dropped = dropped.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what));
        let cut = (cut > 0).then(|| format!("{} cut", counted(cut, "message")));
        let each: Vec<String> = dropped.map(|dropped| format!("{dropped} dropped")).chain(cut).collect();
        text.push_str(&format!("; memory limit reached: {}", each.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_what_is_missing() {
        assert_eq!(omitted_text(&Omitted::default()), "");
        let omitted = Omitted { parts: 1, ..Omitted::default() };
        assert_eq!(omitted_text(&omitted), "; 1 fragment without the start of a message not written");
        let omitted = Omitted { parts: 2, sends: 1, cut: 2, reads: 0, data: 300 };
        let expected = "; 2 fragments without the start of a message not written; memory limit reached: \
                        1 Send dropped, 300 bytes dropped, 2 messages cut";
        assert_eq!(omitted_text(&omitted), expected);
    }
}
