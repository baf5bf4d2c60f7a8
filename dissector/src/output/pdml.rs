//! Writes frames as PDML (Packet Details Markup Language), the XML format of Wireshark.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::packet::TransportKind;

use super::layers::{Layer, LayerField};
use super::record::Record;

/// Writes the start of the document. `capture` is the file name of the capture.
///
/// # Errors
/// `out` reports an error.
pub fn head(capture: &str, out: &mut dyn Write) -> io::Result<()> {
    let capture = escaped(capture);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>")?;
    writeln!(out, "<pdml version=\"0\" creator=\"weft/{}\" capture_file=\"{capture}\">", env!("CARGO_PKG_VERSION"))
}

/// Writes the end of the document.
///
/// # Errors
/// `out` reports an error.
pub fn tail(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</pdml>")
}

/// Writes a frame.
///
/// # Errors
/// `out` reports an error.
pub fn record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let facts = &record.facts;
    let (wire, captured) = facts.len.unwrap_or_default();
    let time = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    let (epoch, relative) = (time(facts.time), time(facts.time.saturating_sub(facts.origin)));
    let number = facts.number.to_string();
    let (wire, captured) = (wire.to_string(), captured.to_string());
    let mut text = String::from("<packet>\n");
    let mut proto = |name: &str, label: &str, size: &str, fields: &[(&str, &str, String)]| {
        let _ = writeln!(text, "  <proto name=\"{name}\" showname=\"{}\" size=\"{size}\" pos=\"0\">", escaped(label));
        for (name, label, show) in fields {
            let (show, label) = (escaped(show), escaped(label));
            let _ = writeln!(text, "    <field name=\"{name}\" showname=\"{label}: {show}\" show=\"{show}\"/>");
        }
        text.push_str("  </proto>\n");
    };
    proto(
        "geninfo",
        "General information",
        &captured,
        &[
            ("num", "Number", number.clone()),
            ("len", "Frame Length", wire.clone()),
            ("caplen", "Captured Length", captured.clone()),
            ("timestamp", "Captured Time", epoch.clone()),
        ],
    );
    let label = format!("Frame {number}");
    proto(
        "frame",
        &label,
        &captured,
        &[
            ("frame.time_epoch", "Seconds since 1970", epoch),
            ("frame.time_relative", "Seconds since the first frame", relative),
            ("frame.number", "Frame number", number),
            ("frame.len", "Bytes on the wire", wire),
            ("frame.cap_len", "Bytes captured", captured.clone()),
        ],
    );
    if let Some(packet) = &facts.packet {
        let (src, dst) = (packet.src, packet.dst);
        let (ip, source, destination) = match src {
            std::net::SocketAddr::V4(_) => ("ip", "ip.src", "ip.dst"),
            std::net::SocketAddr::V6(_) => ("ipv6", "ipv6.src", "ipv6.dst"),
        };
        let ends = [
            (source, "Source address", src.ip().to_string()),
            (destination, "Destination address", dst.ip().to_string()),
        ];
        proto(ip, "Internet Protocol", "0", &ends);
        let ports = (src.port().to_string(), dst.port().to_string());
        match packet.transport {
            TransportKind::Tcp { stream, .. } => proto(
                "tcp",
                "Transmission Control Protocol",
                "0",
                &[
                    ("tcp.srcport", "Source port", ports.0),
                    ("tcp.dstport", "Destination port", ports.1),
                    ("tcp.stream", "Number of the connection", stream.to_string()),
                    ("tcp.len", "Bytes of the segment", packet.payload_len.to_string()),
                ],
            ),
            TransportKind::Udp => proto(
                "udp",
                "User Datagram Protocol",
                "0",
                &[("udp.srcport", "Source port", ports.0), ("udp.dstport", "Destination port", ports.1)],
            ),
        }
    }
    for layer in record.units.iter().flat_map(|unit| &unit.layers) {
        of_layer(layer, &mut text);
    }
    for finding in &record.findings {
        let row = finding.requirement.row();
        let label = escaped(&format!("{} {}: {}", finding.severity, row.id, row.summary));
        let _ = writeln!(text, "  <proto name=\"finding\" showname=\"{label}\" size=\"0\" pos=\"0\">");
        for (name, show) in [
            ("finding.requirement", row.id),
            ("finding.severity", &finding.severity.to_string()),
            ("finding.expected", &finding.expected),
            ("finding.found", &finding.found),
        ] {
            let _ = writeln!(text, "    <field name=\"{name}\" show=\"{}\"/>", escaped(show));
        }
        text.push_str("  </proto>\n");
    }
    text.push_str("</packet>\n\n");
    out.write_all(text.as_bytes())
}

fn of_layer(layer: &Layer, text: &mut String) {
    let Layer { name, label, size, .. } = layer;
    let _ = write!(text, "  <proto name=\"{name}\" showname=\"{}\" size=\"{size}\"", escaped(label));
    position(layer.position, text);
    text.push_str(">\n");
    for field in &layer.fields {
        if field.values.is_empty() {
            continue;
        }
        for show in &field.values {
            let LayerField { name, line, octets, size, .. } = field;
            let _ = write!(text, "    <field name=\"{name}\" showname=\"{}\" size=\"{size}\"", escaped(line));
            position(field.position, text);
            let _ = write!(text, " show=\"{}\"", escaped(show));
            if !octets.is_empty() {
                let _ = write!(text, " value=\"{octets}\"");
            }
            text.push_str("/>\n");
        }
    }
    text.push_str("  </proto>\n");
}

fn position(position: Option<u32>, text: &mut String) {
    if let Some(position) = position {
        let _ = write!(text, " pos=\"{position}\"");
    }
}

/// Escapes text for an attribute of XML 1.0.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML 1.0 does not allow these characters, even if they are escaped.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}
