//! Names the bytes that a finding is about, by their offsets in the frame.

use weft_dissector::Finding;

/// Maximum number of ranges that are printed. A finding about a long FPDU has one range for each
/// frame of the FPDU.
const MAX_RANGES: usize = 3;

/// Returns text such as ", bytes 66 to 68". The numbers are offsets in the frame and start at 0, as
/// in `weft explain` and Wireshark. Returns an empty text if the finding has no known bytes.
pub(super) fn bytes(finding: &Finding) -> String {
    let mut text = String::new();
    let placed = finding.locations.iter().filter(|located| located.len > 0);
    let ranges: Vec<_> = placed.filter_map(|located| Some((located, u64::from(located.offset?)))).collect();
    for (located, first) in ranges.iter().take(MAX_RANGES) {
        text += &match located.len {
            1 => format!(", byte {first}"),
            len => format!(", bytes {first} to {}", first + len - 1),
        };
        if located.frame != finding.frame {
            text += &format!(" of frame {}", located.frame);
        }
    }
    if ranges.len() > MAX_RANGES {
        text += ", and more";
    }
    text
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;
    use weft_dissector::unit::Location;

    use super::*;

    #[test]
    fn names_the_bytes_of_each_frame() {
        let at = |frame: u64, offset, len| Location { frame: frame.into(), offset, len };
        let of = |located: &[Location]| {
            let finding = Finding {
                requirement: requirement!("RDMAP-4.8-6"),
                severity: Severity::Error,
                stream: Some(0.into()),
                direction: 0,
                frame: 13.into(),
                range: 0..0,
                locations: located.to_vec(),
                expected: String::new(),
                found: String::new(),
            };
            bytes(&finding)
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[at(13, None, 4)]), "");
        assert_eq!(of(&[at(13, Some(66), 1)]), ", byte 66");
        assert_eq!(of(&[at(12, Some(90), 2), at(13, Some(54), 3)]), ", bytes 90 to 91 of frame 12, bytes 54 to 56");
        assert_eq!(of(&[at(13, Some(54), 1); 4]), ", byte 54, byte 54, byte 54, and more");
    }
}
