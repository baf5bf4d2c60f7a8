//! Formats the statistics of a connection as text.

use std::fmt;

use super::connection::{ConnectionStats, DirectionStats};
use super::latency::Latencies;
use crate::format::counted;

impl fmt::Display for ConnectionStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.ends;
        let seconds = self.duration_ns as f64 / 1e9;
        writeln!(
            f,
            "stream {}  {a} ⇄ {b}  frames {} to {}, {seconds:.6} s",
            self.stream, self.frames.0, self.frames.1
        )?;
        if let Some(ulp) = self.ulp {
            writeln!(f, "  carries {ulp}")?;
        }
        if let Some(exchange) = self.exchange {
            writeln!(f, "  prepared by port mapper exchange {exchange}")?;
        }
        if let Some(sdp) = &self.sdp {
            sdp.head(f)?;
        }
        for (index, side) in self.directions.iter().enumerate() {
            let (from, to) = if index == 0 { (a, b) } else { (b, a) };
            writeln!(f, "  {from} → {to}")?;
            side.write(&self.directions[1 - index], self.partial, f)?;
            if let Some(sdp) = &self.sdp {
                sdp.halves[index].write(f)?;
            }
        }
        findings(self.findings, f)
    }
}

impl DirectionStats {
    fn write(&self, peer: &DirectionStats, partial: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(startup) = &self.startup {
            write!(f, "    MPA {}: Rev {}", startup.frame, startup.revision)?;
            for (set, text) in [(startup.markers, "markers"), (startup.crc, "CRC"), (startup.rejected, "REJECTED")] {
                if set {
                    write!(f, ", {text}")?;
                }
            }
            write!(f, ", {} bytes of private data", startup.pd_length)?;
            if let Some((ird, ord)) = startup.ird_ord {
                write!(f, ", IRD {ird}, ORD {ord}")?;
            }
            writeln!(f)?;
        }
        if self.fpdus > 0 {
            writeln!(
                f,
                "    FPDUs: {}, ULPDU bytes {}, payload bytes {}",
                self.fpdus, self.ulpdu_octets, self.payload_octets
            )?;
            writeln!(f, "    opcodes: {}", list(self.opcodes.iter().map(|(name, count)| (name.as_str(), *count))))?;
            writeln!(f, "    CRC: {}", list(self.crc.iter().map(|(name, count)| (*name, *count))))?;
            writeln!(f, "    markers: {}", list(self.markers.iter().map(|(name, count)| (*name, *count))))?;
        }
        for (count, what, how) in [
            (self.incomplete, "unit", "with missing bytes"),
            (self.gap_octets, "byte", "not captured"),
            (self.unparsed_octets, "byte", "without an FPDU"),
            (self.streaming_octets, "byte", "outside MPA"),
        ] {
            if count > 0 {
                writeln!(f, "    {} {how}", counted(count, what))?;
            }
        }
        latencies("Reads", &self.reads, partial, f)?;
        latencies("atomic operations", &self.atomics, partial, f)?;
        if let Some(most) = self.most_outstanding.filter(|most| *most > 0) {
            write!(f, "    at most {} outstanding", counted(most.into(), "request"))?;
            if let Some((_, ord)) = self.startup.as_ref().and_then(|startup| startup.ird_ord) {
                write!(f, ", own ORD {ord}")?;
            }
            if let Some((ird, _)) = peer.startup.as_ref().and_then(|startup| startup.ird_ord) {
                write!(f, ", peer's IRD {ird}")?;
            }
            writeln!(f)?;
        }
        if let Some(sdp) = &self.sdp {
            writeln!(f, "    SDP: {}", list(sdp.messages.iter().map(|(name, count)| (name.as_str(), *count))))?;
            write!(f, "    SDP user data {} bytes, MSeq {}, MSeqAck {}", sdp.data_octets, sdp.mseq.0, sdp.mseq.1)?;
            if let Some((least, last)) = sdp.bufs {
                write!(f, ", Bufs minimum {least}, last {last}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

pub(super) fn findings([notes, warnings, errors]: [u64; 3], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
    writeln!(f, "  findings: {errors}, {warnings}, {}", counted(notes, "note"))
}

pub(super) fn list<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    counts.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

fn latencies(what: &str, latencies: &Latencies, partial: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(found) = latencies.percentiles() else { return Ok(()) };
    let least = if partial { "at least " } else { "" };
    let ms = |ns: u64| format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    writeln!(
        f,
        "    {what}: {least}{}, latency in ms: minimum {}, 50 % {}, 90 % {}, 99 % {}, maximum {}",
        found.count,
        ms(found.min_ns),
        ms(found.p50_ns),
        ms(found.p90_ns),
        ms(found.p99_ns),
        ms(found.max_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Line([u64; 3]);

    impl fmt::Display for Line {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            findings(self.0, f)
        }
    }

    struct Reads(bool);

    impl fmt::Display for Reads {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mut reads = Latencies::default();
            reads.add(1_500_000);
            latencies("Reads", &reads, self.0, f)
        }
    }

    #[test]
    fn a_partial_count_is_the_least() {
        assert!(Reads(true).to_string().starts_with("    Reads: at least 1, latency in ms: minimum 1.500000, "));
        assert!(Reads(false).to_string().starts_with("    Reads: 1, latency in ms: minimum 1.500000, "));
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(Line([0, 2, 1]).to_string(), "  findings: 1 error, 2 warnings, 0 notes\n");
    }
}
