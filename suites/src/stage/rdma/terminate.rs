//! Expects a refusal: a Terminate with an error, or a close without a Terminate.

use weft_core::RequirementId;
use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use super::{NoFrame, RdmaSide, ulpdu};
use crate::stage::{Expectation, Stop, describe};

/// The fields of an expected refusal.
///
/// The requirements of the [`Expectation`] are about the refused message. A refusal meets them,
/// with or without a Terminate. The requirements in `terminate` are about the Terminate. The
/// requirements in `code` are about the error in the Terminate.
#[derive(Debug, Clone, Default)]
pub(crate) struct TerminateFields {
    /// The allowed errors: layer and type in one byte, then the code. If the list is empty, any
    /// error is allowed.
    pub(crate) errors: Vec<[u8; 2]>,
    /// The requirements that are violated if the Terminate has another error.
    pub(crate) code: Vec<RequirementId>,
    /// The requirements that are violated if there is no Terminate.
    pub(crate) terminate: Vec<RequirementId>,
}

impl RdmaSide<'_> {
    /// Expects that the target refuses what it received. Returns the complete FPDU of the
    /// Terminate, if the target sent one.
    pub(crate) async fn expect_terminate(
        &mut self,
        expectation: &Expectation,
        fields: &TerminateFields,
    ) -> Result<Option<Vec<u8>>, Stop> {
        let expected = fields.to_string();
        let all = |ids: &[&[RequirementId]]| Expectation { requirements: ids.concat(), ..expectation.clone() };
        let refused = all(&[&expectation.requirements]);
        // Without a refusal, all of these requirements are violated.
        let everything = all(&[&expectation.requirements, &fields.terminate, &fields.code]);
        let deadline = self.connections.link.now() + expectation.within;
        match self.connections.fpdu(self.number, deadline).await? {
            Ok(fpdu) => {
                let text = describe::stream(&fpdu);
                let Some(error) = error_of(&fpdu) else {
                    return Err(self.recorder().wrong(&everything, &expected, &text));
                };
                self.connections.log.answered();
                let [control, code] = error;
                let actual = format!("Terminate {control:02x} {code:02x}");
                self.recorder().met(&all(&[&refused.requirements, &fields.terminate]), &expected, &actual);
                let code = Expectation { shows: Vec::new(), ..all(&[&fields.code]) };
                if fields.errors.is_empty() || fields.errors.contains(&error) {
                    self.recorder().met(&code, &expected, &actual);
                    return Ok(Some(fpdu));
                }
                Err(self.recorder().wrong(&code, &expected, &actual))
            }
            Err(none @ (NoFrame::Fin | NoFrame::Reset)) => {
                let actual = format!("it {none} without a Terminate");
                self.recorder().met(&refused, &expected, &actual);
                if !fields.terminate.is_empty() {
                    let terminate = Expectation { shows: Vec::new(), ..all(&[&fields.terminate]) };
                    return Err(self.recorder().unmet(&terminate, &expected, &actual));
                }
                // If the expectation names no requirement, the script needs the Terminate to
                // continue. So a close without a Terminate does not meet the expectation.
                if !fields.code.is_empty() || everything.requirements.is_empty() {
                    let code = Expectation { shows: fields.code.clone(), requirements: Vec::new(), ..refused };
                    return Err(self.recorder().undecided(&code, &expected, &actual));
                }
                Ok(None)
            }
            Err(NoFrame::TimedOut) => {
                let text = self.recorder().silence(expectation);
                Err(self.recorder().unmet(&everything, &expected, &format!("{text}, and the connection stays open")))
            }
            Err(none) => {
                let actual = self.no_fpdu(&none);
                Err(self.recorder().unmet(&everything, &expected, &actual))
            }
        }
    }
}

/// Returns layer and type, then the code, if the FPDU has a Terminate.
fn error_of(fpdu: &[u8]) -> Option<[u8; 2]> {
    let segment = Segment::parse(ulpdu(fpdu)).ok()?;
    let (Segment::Tagged(_, payload) | Segment::Untagged(_, payload)) = segment;
    let is_terminate = segment.ulp_control().opcode() == Opcode::TERMINATE;
    payload.first_chunk().copied().filter(|_| is_terminate)
}

impl std::fmt::Display for TerminateFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.terminate.is_empty() { "a refusal" } else { "a Terminate" })?;
        for (place, [control, code]) in self.errors.iter().enumerate() {
            write!(f, "{} {control:02x} {code:02x}", if place == 0 { ":" } else { " or" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correct;

    #[test]
    fn only_a_terminate_has_an_error() {
        // This is a Terminate (RFC 5040 Figure 7) after an untagged header of queue 2.
        let ulpdu = b"\x41\x47\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\x12\x01\0\0";
        assert_eq!(error_of(&correct::fpdu(ulpdu, true)), Some([0x12, 0x01]));
        assert_eq!(error_of(&correct::fpdu(&ulpdu[..19], true)), None);
        assert_eq!(error_of(&correct::fpdu(&correct::send(1, b"hi"), true)), None);
    }

    #[test]
    fn describes_the_expected_errors() {
        let any = TerminateFields::default();
        assert_eq!(any.to_string(), "a refusal");
        let one = TerminateFields { errors: vec![[0x12, 3], [0x12, 2]], ..any };
        assert_eq!(one.to_string(), "a refusal: 12 03 or 12 02");
    }
}
