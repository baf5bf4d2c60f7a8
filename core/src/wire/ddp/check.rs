//! Checks that apply to both DDP headers (tagged and untagged).

use super::Control;
use crate::RequirementId;
use crate::error::{Found, Layer, WireError};
use crate::requirement;

/// The error about a ULPDU that is shorter than its DDP header.
pub(super) fn short(ulpdu: &[u8], expected: &'static str, requirement: RequirementId) -> WireError {
    let requirement = Some(requirement);
    WireError { requirement, ..WireError::too_short(Layer::Ddp, "segment", expected, ulpdu.len()) }
}

/// Checks the T bit against `tagged`, and DV against the two low bits of `version`.
pub(super) fn check_header(control: Control, tagged: bool, version: u8) -> Result<(), WireError> {
    let wrong = |field, expected, found: u8, requirement| WireError {
        layer: Layer::Ddp,
        field,
        offset: 0,
        expected,
        found: Found::Value(u64::from(found)),
        requirement: Some(requirement),
    };
    match (control.tagged(), tagged) {
        (false, true) => return Err(wrong("T", "1 in a tagged segment", 0, requirement!("DDP-4.1-2"))),
        (true, false) => return Err(wrong("T", "0 in an untagged segment", 1, requirement!("DDP-4.1-3"))),
        (true, true) | (false, false) => {}
    }
    if control.version() != version & 3 {
        let expected = "the version of the stream";
        return Err(wrong("DV", expected, control.version(), requirement!("DDP-4.1-13")));
    }
    Ok(())
}
