//! `weft scrub`: writes a copy of a capture without payload and addresses.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::Dissector;
use weft_dissector::output::text::counted;
use weft_dissector::scrub::{Counts, Planner, Scrubber, Survey};
use weft_dissector::source::Frame;

use super::dissect::FrameWriter;
use crate::exit::{BadInput, note, reject, unwritable};
use crate::input::{DecodeAs, Input, Next, RereadableCapture, refuse_same};

/// The comment in the header of the copy.
const COMMENT: &str = "Scrubbed by weft: payload is replaced, and addresses are mapped.";

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "weft keeps headers of IP, TCP, UDP, MPA, DDP, RDMAP, SDP, port mappers and known protocols\n\
    above RDMAP. It replaces all other bytes by the letter V. Addresses become 198.18.0.0/15,\n\
    2001:db8::/32 and 02:00:..., in the order in which they appear. Correct checksums and CRCs stay\n\
    correct, and wrong ones stay wrong. Comments and names in the capture are not copied.\n\
    Check the copy before you share it: ports, sequence numbers, STags, lengths and times stay.\n\n\
    Examples:\n  \
    weft scrub capture.pcap shared.pcapng           write a copy that can be shared\n  \
    weft scrub capture.pcap - | gzip > shared.gz    write the copy to standard output\n  \
    weft lint shared.pcapng                         see the same findings in the copy")]
pub(crate) struct Arguments {
    /// Read this capture; use - for standard input
    ///
    /// docs/captures.md lists the formats.
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Write the copy to this file as pcapng; use - for standard output
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    decode: DecodeAs,
}

/// Reads the capture three times, and writes the copy.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { from, to, force, decode } = arguments;
    let is_standard_output = to == Path::new("-");
    refuse_same(from, to)?;
    if is_standard_output && io::stdout().is_terminal() {
        reject!("refusing to write a capture to a terminal; redirect the output or name a file");
    }
    if !is_standard_output && !force && to.exists() {
        reject!("{}: the file exists; to replace it, add --force", to.display());
    }
    let capture = RereadableCapture::open(from)?;
    let dissector = || decode.apply(Dissector::default());
    let (mut scrubber, without_commands) = plan(&capture, dissector)?;
    let mut input = capture.input()?;
    let failed = |error: io::Error| BadInput(format!("{}: {}", to.display(), unwritable(to, &error)));
    let out: Box<dyn Write> =
        if is_standard_output { Box::new(io::stdout()) } else { Box::new(File::create(to).map_err(failed)?) };
    copy(&mut input, &mut scrubber, BufWriter::with_capacity(1 << 16, out))?;
    let name = input.name().to_owned();
    let names = input.names().count() as u64;
    input.close()?;
    report(&name, &scrubber.counts(), names);
    if without_commands > 0 {
        let connections = counted(without_commands, "connection");
        note(&format!("{name}: {connections} of NFS or SMB: in the copy, `weft io` lists no commands of them"));
    }
    if to.extension().is_some_and(|extension| extension == "pcap") {
        note(&format!("{}: the copy is a pcapng file, although its name ends with .pcap", to.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the capture twice, and decides which bytes stay. `new` creates a dissector. Also returns
/// the number of connections whose commands `weft io` does not find in the copy.
fn plan(capture: &RereadableCapture, new: impl Fn() -> Dissector) -> anyhow::Result<(Scrubber, u64)> {
    let (mut input, mut dissector, mut survey) = (capture.input()?, new(), Survey::default());
    while let Next::Frame(frame) = input.next() {
        dissector.frame(&frame, &mut survey);
    }
    dissector.finish(&mut survey);
    let without_commands = survey.connections_without_commands();
    let (mut input, mut dissector, mut planner) = (capture.input()?, new(), Planner::new(survey));
    while let Next::Frame(frame) = input.next() {
        planner.frame(&frame, &mut dissector);
    }
    dissector.finish(&mut planner);
    Ok((planner.finish(new()), without_commands))
}

/// Writes all frames of the capture after their replacement. Interfaces have no names.
fn copy(input: &mut Input, scrubber: &mut Scrubber, out: impl Write) -> io::Result<()> {
    let mut writer = FrameWriter::new(out, COMMENT)?;
    while let Next::Frame(frame) = input.next() {
        let octets = scrubber.frame(&frame);
        writer.frame(&Frame { octets, ..frame }, &[])?;
    }
    writer.finish()
}

/// Reports on standard error what was replaced, and what weft could not read.
fn report(name: &str, counts: &Counts, names: u64) {
    let Counts { frames, changed_octets, ipv4, ipv6, mac, cut_frames, fragments, unread_frames } = *counts;
    let replaced = counted(changed_octets, "byte");
    note(&format!(
        "{name}: {} written, {replaced} replaced; addresses: {ipv4} IPv4, {ipv6} IPv6, {mac} MAC; {} dropped",
        counted(frames, "frame"),
        counted(names, "name"),
    ));
    if fragments > 0 {
        note(&format!(
            "{name}: {} of incomplete IP packets, or of packets without TCP: weft replaced all of their payload",
            counted(fragments, "fragment"),
        ));
    }
    if unread_frames > 0 {
        note(&format!(
            "{name}: {} without a complete TCP or UDP header: weft replaced all bytes after the last known header",
            counted(unread_frames, "frame"),
        ));
    }
    if cut_frames > 0 {
        note(&format!("{name}: {} cut by the snap length or by the end of the file", counted(cut_frames, "frame")));
    }
}
