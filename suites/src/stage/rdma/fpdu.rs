//! Expectations of FPDUs from the target, in a stream without markers.

use weft_core::crc::{self, CRC_LEN};
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::fpdu::LENGTH_LEN;

use super::{NoFrame, RdmaSide};
use crate::model::{Direction, StepKind};
use crate::stage::{Arrival, Expectation, Stop, describe};

/// The expected fields of an FPDU.
#[derive(Debug, Clone, Default)]
pub(crate) struct FpduFields {
    /// RDMAP opcode.
    pub(crate) opcode: Option<u8>,
    /// The bytes after the headers.
    pub(crate) payload: Option<Vec<u8>>,
    /// Fields of the DDP header.
    pub(crate) header: HeaderFields,
    /// Whether the CRC field must be correct.
    pub(crate) crc: bool,
}

/// The expected bytes of the target.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExpectedOctets {
    /// The first bytes.
    pub(crate) begins: Vec<u8>,
    /// Whether the bytes remain for the next expectation.
    pub(crate) keep: bool,
    /// Whether the bytes include the markers of the stream. If so, and if `keep` is not set, a
    /// script must not expect FPDUs on this connection later. The expectation takes all received
    /// bytes, so weft no longer knows the positions of the markers in later bytes.
    pub(crate) has_markers: bool,
}

/// The expected fields of a DDP header. Only a tagged header has STag and TO. Only an untagged
/// header has QN, MSN and MO.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeaderFields {
    pub(crate) last: Option<bool>,
    pub(crate) stag: Option<u32>,
    pub(crate) tagged_offset: Option<u64>,
    pub(crate) qn: Option<u32>,
    pub(crate) msn: Option<u32>,
    pub(crate) mo: Option<u32>,
}

impl HeaderFields {
    /// Returns the name and the expected value of each field except L.
    fn wanted(&self) -> [(&'static str, Option<u64>); 5] {
        [
            ("STag", self.stag.map(u64::from)),
            ("TO", self.tagged_offset),
            ("QN", self.qn.map(u64::from)),
            ("MSN", self.msn.map(u64::from)),
            ("MO", self.mo.map(u64::from)),
        ]
    }

    /// Describes the first field that differs, with its value.
    fn miss(&self, segment: &Segment<'_>) -> Option<String> {
        let last = segment.control().last();
        if self.last.is_some_and(|wanted| wanted != last) {
            return Some(format!(", whose L is {}", u8::from(last)));
        }
        let found: [Option<u64>; 5] = match segment {
            Segment::Tagged(header, _) => {
                [Some(header.stag.get().into()), Some(header.tagged_offset.get()), None, None, None]
            }
            Segment::Untagged(header, _) => {
                let fields = [header.qn, header.msn, header.mo].map(|field| Some(u64::from(field.get())));
                [None, None, fields[0], fields[1], fields[2]]
            }
        };
        let mut fields = self.wanted().into_iter().zip(found);
        let ((name, _), found) = fields.find(|((_, wanted), found)| wanted.is_some() && wanted != found)?;
        Some(match found {
            Some(found) => format!(", whose {name} is {found:#x}"),
            None => format!(", which has no {name}"),
        })
    }
}

impl std::fmt::Display for HeaderFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(last) = self.last {
            write!(f, ", L={}", u8::from(last))?;
        }
        write_wanted(f, &self.wanted())
    }
}

/// Writes the names and values of the expected fields. Skips fields without an expected value.
pub(in crate::stage) fn write_wanted(
    f: &mut std::fmt::Formatter<'_>,
    fields: &[(&str, Option<u64>)],
) -> std::fmt::Result {
    for (name, value) in fields {
        if let Some(value) = value {
            write!(f, ", {name} {value:#x}")?;
        }
    }
    Ok(())
}

/// Describes a payload that differs from the expected payload.
const PAYLOAD_DIFFERS: &str = ", whose payload differs";

impl RdmaSide<'_> {
    /// Expects an FPDU with these fields. Returns the complete FPDU.
    pub(crate) async fn expect_fpdu(
        &mut self,
        expectation: &Expectation,
        fields: &FpduFields,
    ) -> Result<Vec<u8>, Stop> {
        let expected = fields.to_string();
        let deadline = self.connections.link.now() + expectation.within;
        match self.connections.fpdu(self.number, deadline).await? {
            Ok(fpdu) => {
                let text = describe::stream(&fpdu);
                if let Some(what) = fields.miss(&fpdu) {
                    let differing = if what == PAYLOAD_DIFFERS { fields.differing(&fpdu) } else { &fpdu[..] };
                    return Err(self.recorder().wrong_from(expectation, &expected, &(text + &what), differing));
                }
                self.connections.log.answered();
                self.recorder().met(expectation, &expected, &text);
                Ok(fpdu)
            }
            Err(NoFrame::TimedOut) => Err(self.recorder().timed_out(expectation, &expected)),
            Err(none) => {
                let actual = self.no_fpdu(&none);
                Err(self.recorder().unmet(expectation, &expected, &actual))
            }
        }
    }

    /// Expects that the target's next bytes begin with the bytes in `fields.begins`. Returns all
    /// received bytes.
    pub(crate) async fn expect_octets(
        &mut self,
        expectation: &Expectation,
        fields: &ExpectedOctets,
    ) -> Result<Vec<u8>, Stop> {
        let ExpectedOctets { begins, keep, has_markers } = fields;
        let expected = format!("bytes that begin with {}", hex(begins));
        let deadline = self.connections.link.now() + expectation.within;
        let ended = loop {
            if self.connections.get(self.number)?.octets(*has_markers).len() >= begins.len() {
                break None;
            }
            match self.connections.receive(self.number, deadline).await? {
                Arrival::Octets => {}
                ended => break Some(ended),
            }
        };
        let octets = std::mem::take(self.connections.get(self.number)?.octets(*has_markers));
        let shown = hex(&octets[..octets.len().min(begins.len().max(8))]);
        match ended {
            None if octets.starts_with(begins) => {
                if *keep {
                    self.connections.get(self.number)?.octets(*has_markers).clone_from(&octets);
                }
                self.recorder().met(expectation, &expected, &format!("bytes that begin with {shown}"));
                Ok(octets)
            }
            Some(Arrival::TimedOut) => {
                let text = format!("it sent {} bytes within {} s", octets.len(), expectation.within.as_secs_f64());
                let number = self.number;
                self.recorder().step(number, Direction::Observed, StepKind::Silence, text.clone(), None);
                Err(self.recorder().overdue(expectation, &expected, &text))
            }
            _ => {
                self.recorder().mark_wrong();
                let actual = match ended {
                    None => format!("it sent bytes that begin with {shown}"),
                    Some(_) => format!("it sent {} bytes and closed the connection", octets.len()),
                };
                Err(self.recorder().unmet(expectation, &expected, &actual))
            }
        }
    }

    /// Describes what arrived instead of an FPDU.
    pub(in crate::stage) fn no_fpdu(&mut self, none: &NoFrame) -> String {
        if !matches!(none, NoFrame::Other(_)) {
            return format!("it {none}");
        }
        self.recorder().mark_wrong();
        format!("it {none}, which is not a complete FPDU")
    }
}

/// Returns the ULPDU of a complete FPDU.
pub(crate) fn ulpdu(fpdu: &[u8]) -> &[u8] {
    let length = fpdu.first_chunk().map_or(0, |len| usize::from(u16::from_be_bytes(*len)));
    fpdu.get(LENGTH_LEN..LENGTH_LEN + length).unwrap_or_default()
}

/// Returns whether the CRC field of a complete FPDU without markers is correct.
pub(crate) fn crc_is_right(fpdu: &[u8]) -> bool {
    let (covered, field) = fpdu.split_at(fpdu.len().saturating_sub(CRC_LEN));
    crc::to_octets(crc::crc32c(covered)) == *field
}

impl FpduFields {
    /// Describes the first field that differs.
    fn miss(&self, fpdu: &[u8]) -> Option<String> {
        if self.crc && !crc_is_right(fpdu) {
            return Some(", whose CRC is wrong".into());
        }
        let segment = Segment::parse(ulpdu(fpdu)).ok();
        let opcode = segment.as_ref().map(|segment| segment.ulp_control().opcode().0);
        if self.opcode.is_some() && opcode != self.opcode {
            return Some(String::new());
        }
        if let Some(what) = segment.as_ref().and_then(|segment| self.header.miss(segment)) {
            return Some(what);
        }
        let payload = match segment {
            Some(Segment::Tagged(_, payload) | Segment::Untagged(_, payload)) => payload,
            None => &[],
        };
        let wanted = self.payload.as_ref()?;
        (wanted != payload).then(|| PAYLOAD_DIFFERS.into())
    }

    /// Returns the bytes of a complete FPDU from the first payload byte on that differs from the
    /// expected payload.
    fn differing<'f>(&self, fpdu: &'f [u8]) -> &'f [u8] {
        let payload = match Segment::parse(ulpdu(fpdu)) {
            Ok(Segment::Tagged(_, payload) | Segment::Untagged(_, payload)) => payload,
            Err(_) => &[],
        };
        let wanted = self.payload.as_deref().unwrap_or_default();
        let begin = LENGTH_LEN + ulpdu(fpdu).len() - payload.len();
        let same = payload.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        fpdu.get(begin + same..).unwrap_or_default()
    }
}

impl std::fmt::Display for FpduFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an FPDU")?;
        if let Some(opcode) = self.opcode {
            write!(f, " with {}", weft_core::wire::rdmap::Opcode(opcode).name())?;
        }
        if let Some(payload) = &self.payload {
            write!(f, ", {} bytes of payload", payload.len())?;
        }
        write!(f, "{}", self.header)?;
        if self.crc { f.write_str(", with a correct CRC") } else { Ok(()) }
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correct;

    /// Byte 20 of the FPDU is the first payload byte, after the length (2) and the DDP header (18).
    #[test]
    fn finds_the_first_payload_byte_that_differs() {
        let fpdu = correct::fpdu(&correct::send(1, b"hello"), true);
        let from = |payload: &[u8]| {
            let fields = FpduFields { payload: Some(payload.to_vec()), ..FpduFields::default() };
            fpdu.len() - fields.differing(&fpdu).len()
        };
        assert_eq!([&b"help!"[..], b"jello", b"hell", b"hello!"].map(from), [23, 20, 24, 25]);
    }

    #[test]
    fn each_field_is_looked_at() {
        let fpdu = correct::fpdu(&correct::send(1, b"hi"), true);
        let wanted = |opcode, payload: &[u8], crc| {
            let header = HeaderFields { msn: Some(1), ..HeaderFields::default() };
            FpduFields { opcode, payload: Some(payload.to_vec()), header, crc }
        };
        let other =
            FpduFields { header: HeaderFields { stag: Some(1), ..HeaderFields::default() }, ..FpduFields::default() };
        assert_eq!(wanted(Some(3), b"hi", true).miss(&fpdu), None);
        assert_eq!(other.miss(&fpdu).unwrap(), ", which has no STag");
        let second = correct::fpdu(&correct::send(2, b"hi"), true);
        assert_eq!(wanted(Some(3), b"hi", true).miss(&second).unwrap(), ", whose MSN is 0x2");
        assert!(wanted(Some(5), b"hi", true).miss(&fpdu).is_some());
        assert!(wanted(None, b"ho", true).miss(&fpdu).is_some());
        let unchecked = correct::fpdu(&correct::send(1, b"hi"), false);
        assert!(wanted(None, b"hi", true).miss(&unchecked).is_some());
        assert_eq!(wanted(None, b"hi", false).miss(&unchecked), None);
        assert_eq!(
            wanted(Some(3), b"", true).to_string(),
            "an FPDU with Send, 0 bytes of payload, MSN 0x1, with a correct CRC"
        );
    }
}
