//! The error that a Terminate reports. It is a triplet of layer, error type and error code. This
//! module also has the names of all assigned triplets.
//!
//! RFC 5040 Figure 9 defines the errors of RDMAP. RFC 5041 section 7.2 defines the errors of DDP.
//! RFC 5044 section 8 and RFC 6581 section 8 define the errors of MPA. The code that detects an
//! error chooses the triplet.

use std::fmt;

use crate::wire::open_enum::open_enum;

open_enum! {
    /// Layer, four bits (RFC 5040 4.8).
    ErrorLayer(u8), debug "{:#x} ({})", otherwise "reserved" {
        /// RDMAP itself.
        RDMAP = 0 => "RDMAP",
        /// DDP.
        DDP = 1 => "DDP",
        /// The lower layer: MPA.
        LLP = 2 => "LLP",
    }
}

/// Layer, EType and Error Code. Unassigned values are kept as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TerminateError {
    /// Layer, 0 to 15.
    pub layer: ErrorLayer,
    /// EType, 0 to 15; its meaning depends on the layer.
    pub error_type: u8,
    /// Error Code; its meaning depends on layer and type.
    pub code: u8,
}

macro_rules! errors {
    ($($(#[$doc:meta])* $constant:ident = $layer:ident $error_type:literal $code:literal => $text:literal,)+) => {
        impl TerminateError {
            $(
                $(#[$doc])*
                pub const $constant: TerminateError =
                    TerminateError { layer: ErrorLayer::$layer, error_type: $error_type, code: $code };
            )+

            /// Every assigned triplet, ordered by layer, type and code. For the Local Catastrophic
            /// Error of RDMAP, the list has only code 0, although every code is acceptable.
            pub const ALL: &'static [TerminateError] = &[$(TerminateError::$constant),+];

            fn assigned_name(self) -> Option<&'static str> {
                // An RDMAP Local Catastrophic Error has no code: any value is acceptable (RFC 5040
                // Figure 9).
                let any_code = self.layer == ErrorLayer::RDMAP && self.error_type == 0;
                let key = if any_code { TerminateError { code: 0, ..self } } else { self };
                $(if key == TerminateError::$constant { return Some($text); })+
                None
            }
        }
    };
}

errors! {
    /// Local Catastrophic Error; any code is acceptable.
    RDMAP_LOCAL_CATASTROPHIC = RDMAP 0 0x00 => "Local Catastrophic Error",
    /// Remote Protection Error: Invalid STag.
    RDMAP_INVALID_STAG = RDMAP 1 0x00 => "Invalid STag",
    /// Remote Protection Error: Base or bounds violation.
    RDMAP_BASE_OR_BOUNDS = RDMAP 1 0x01 => "Base or bounds violation",
    /// Remote Protection Error: Access rights violation.
    RDMAP_ACCESS_RIGHTS = RDMAP 1 0x02 => "Access rights violation",
    /// Remote Protection Error: STag not associated with RDMAP Stream.
    RDMAP_STAG_NOT_ASSOCIATED = RDMAP 1 0x03 => "STag not associated with RDMAP Stream",
    /// Remote Protection Error: TO wrap.
    RDMAP_TO_WRAP = RDMAP 1 0x04 => "TO wrap",
    /// Remote Protection Error: STag cannot be Invalidated.
    RDMAP_PROTECTION_CANNOT_INVALIDATE = RDMAP 1 0x09 => "STag cannot be Invalidated",
    /// Remote Protection Error: Unspecified Error.
    RDMAP_PROTECTION_UNSPECIFIED = RDMAP 1 0xff => "Unspecified Error",
    /// Remote Operation Error: Invalid RDMAP version.
    RDMAP_INVALID_VERSION = RDMAP 2 0x05 => "Invalid RDMAP version",
    /// Remote Operation Error: Unexpected OpCode.
    RDMAP_UNEXPECTED_OPCODE = RDMAP 2 0x06 => "Unexpected OpCode",
    /// Remote Operation Error: Catastrophic error, localized to RDMAP Stream.
    RDMAP_CATASTROPHIC_STREAM = RDMAP 2 0x07 => "Catastrophic error, localized to RDMAP Stream",
    /// Remote Operation Error: Catastrophic error, global.
    RDMAP_CATASTROPHIC_GLOBAL = RDMAP 2 0x08 => "Catastrophic error, global",
    /// Remote Operation Error: STag cannot be Invalidated.
    RDMAP_OPERATION_CANNOT_INVALIDATE = RDMAP 2 0x09 => "STag cannot be Invalidated",
    /// Remote Operation Error: Unspecified Error.
    RDMAP_OPERATION_UNSPECIFIED = RDMAP 2 0xff => "Unspecified Error",
    /// Local Catastrophic.
    DDP_LOCAL_CATASTROPHIC = DDP 0 0x00 => "Local Catastrophic",
    /// Tagged Buffer Error: Invalid STag.
    DDP_TAGGED_INVALID_STAG = DDP 1 0x00 => "Invalid STag",
    /// Tagged Buffer Error: Base or bounds violation.
    DDP_TAGGED_BASE_OR_BOUNDS = DDP 1 0x01 => "Base or bounds violation",
    /// Tagged Buffer Error: STag not associated with DDP Stream.
    DDP_TAGGED_STAG_NOT_ASSOCIATED = DDP 1 0x02 => "STag not associated with DDP Stream",
    /// Tagged Buffer Error: TO wrap.
    DDP_TAGGED_TO_WRAP = DDP 1 0x03 => "TO wrap",
    /// Tagged Buffer Error: Invalid DDP version.
    DDP_TAGGED_INVALID_VERSION = DDP 1 0x04 => "Invalid DDP version",
    /// Untagged Buffer Error: Invalid QN.
    DDP_UNTAGGED_INVALID_QN = DDP 2 0x01 => "Invalid QN",
    /// Untagged Buffer Error: Invalid MSN - no buffer available.
    DDP_UNTAGGED_NO_BUFFER = DDP 2 0x02 => "Invalid MSN - no buffer available",
    /// Untagged Buffer Error: Invalid MSN - MSN range is not valid.
    DDP_UNTAGGED_MSN_RANGE = DDP 2 0x03 => "Invalid MSN - MSN range is not valid",
    /// Untagged Buffer Error: Invalid MO.
    DDP_UNTAGGED_INVALID_MO = DDP 2 0x04 => "Invalid MO",
    /// Untagged Buffer Error: DDP Message too long for available buffer.
    DDP_UNTAGGED_TOO_LONG = DDP 2 0x05 => "DDP Message too long for available buffer",
    /// Untagged Buffer Error: Invalid DDP version.
    DDP_UNTAGGED_INVALID_VERSION = DDP 2 0x06 => "Invalid DDP version",
    /// TCP connection closed, terminated, or lost.
    MPA_CONNECTION_LOST = LLP 0 0x01 => "TCP connection closed, terminated, or lost",
    /// The received MPA CRC does not match the calculated CRC.
    MPA_CRC = LLP 0 0x02 => "MPA CRC does not match",
    /// Marker and ULPDU_Length do not agree on the start of an FPDU.
    MPA_MARKER = LLP 0 0x03 => "MPA Marker and ULPDU_Length do not agree",
    /// Invalid MPA Request Frame or MPA Reply Frame.
    MPA_INVALID_STARTUP = LLP 0 0x04 => "Invalid MPA Request or Reply Frame",
    /// Local catastrophic (RFC 6581).
    MPA_LOCAL_CATASTROPHIC = LLP 0 0x05 => "Local catastrophic",
    /// Insufficient IRD resources (RFC 6581).
    MPA_INSUFFICIENT_IRD = LLP 0 0x06 => "Insufficient IRD resources",
    /// No matching RTR option (RFC 6581).
    MPA_NO_MATCHING_RTR = LLP 0 0x07 => "No matching RTR option",
}

impl TerminateError {
    /// A triplet, assigned or not. `layer` and `error_type` are cut to four bits.
    #[must_use]
    pub const fn new(layer: u8, error_type: u8, code: u8) -> Self {
        TerminateError { layer: ErrorLayer(layer & 0xf), error_type: error_type & 0xf, code }
    }

    /// Name of the Error Code, or "reserved" if no specification assigns the triplet.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.assigned_name().unwrap_or("reserved")
    }

    /// Returns whether a specification assigns this triplet.
    #[must_use]
    pub fn is_assigned(self) -> bool {
        self.assigned_name().is_some()
    }

    /// Name of the Error Type in its layer, or "reserved" if the type is unassigned.
    #[must_use]
    pub const fn type_name(self) -> &'static str {
        match (self.layer, self.error_type) {
            (ErrorLayer::RDMAP, 0) => "Local Catastrophic Error",
            (ErrorLayer::RDMAP, 1) => "Remote Protection Error",
            (ErrorLayer::RDMAP, 2) => "Remote Operation Error",
            (ErrorLayer::DDP, 0) => "Local Catastrophic",
            (ErrorLayer::DDP, 1) => "Tagged Buffer Error",
            (ErrorLayer::DDP, 2) => "Untagged Buffer Error",
            (ErrorLayer::DDP, 3) => "Reserved for the LLP",
            (ErrorLayer::LLP, 0) => "MPA Error",
            _ => "reserved",
        }
    }
}

impl fmt::Display for TerminateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.layer, self.type_name(), self.name())
    }
}

impl fmt::Debug for TerminateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}/{:x}/{:02x} ({self})", self.layer.0, self.error_type, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row has three codes (layer, error type, error code) and a part of their name. The rows
    /// are from RFC 5040 Figure 9, RFC 5041 section 7.2, RFC 5044 section 8 and RFC 6581 section 8.
    #[test]
    fn every_code_of_the_four_specifications_is_there() {
        let rows = [
            ([0, 1, 0x00], "Invalid STag"),
            ([0, 1, 0x01], "bounds"),
            ([0, 1, 0x02], "Access rights"),
            ([0, 1, 0x03], "not associated with RDMAP"),
            ([0, 1, 0x04], "TO wrap"),
            ([0, 1, 0x09], "Invalidated"),
            ([0, 1, 0xff], "Unspecified"),
            ([0, 2, 0x05], "RDMAP version"),
            ([0, 2, 0x06], "OpCode"),
            ([0, 2, 0x07], "localized"),
            ([0, 2, 0x08], "global"),
            ([0, 2, 0x09], "Invalidated"),
            ([0, 2, 0xff], "Unspecified"),
            ([1, 0, 0x00], "Catastrophic"),
            ([1, 1, 0x00], "Invalid STag"),
            ([1, 1, 0x01], "bounds"),
            ([1, 1, 0x02], "not associated with DDP"),
            ([1, 1, 0x03], "TO wrap"),
            ([1, 1, 0x04], "DDP version"),
            ([1, 2, 0x01], "QN"),
            ([1, 2, 0x02], "no buffer"),
            ([1, 2, 0x03], "range"),
            ([1, 2, 0x04], "MO"),
            ([1, 2, 0x05], "too long"),
            ([1, 2, 0x06], "DDP version"),
            ([2, 0, 0x01], "TCP connection"),
            ([2, 0, 0x02], "CRC"),
            ([2, 0, 0x03], "Marker"),
            ([2, 0, 0x04], "Request or Reply"),
            ([2, 0, 0x05], "catastrophic"),
            ([2, 0, 0x06], "IRD"),
            ([2, 0, 0x07], "RTR"),
        ];
        for layer in 0..16 {
            for error_type in 0..16 {
                for code in 0..=255 {
                    let error = TerminateError::new(layer, error_type, code);
                    let row = rows.iter().find(|row| row.0 == [layer, error_type, code]);
                    let any_code = (layer, error_type) == (0, 0);
                    assert_eq!(error.is_assigned(), row.is_some() || any_code, "{error:?}");
                    assert!(row.is_none_or(|row| error.name().contains(row.1)), "{error:?}");
                }
            }
        }
        assert_eq!(TerminateError::ALL.len(), 33);
        assert!(TerminateError::ALL.iter().all(|error| error.is_assigned()));
    }

    #[test]
    fn names_follow_layer_and_type() {
        let name = |layer, error_type, code| TerminateError::new(layer, error_type, code).to_string();
        assert_eq!(name(0, 1, 2), "RDMAP: Remote Protection Error: Access rights violation");
        assert_eq!(name(0, 2, 9), "RDMAP: Remote Operation Error: STag cannot be Invalidated");
        assert_eq!(name(0, 0, 0x5a), "RDMAP: Local Catastrophic Error: Local Catastrophic Error");
        assert_eq!(name(1, 1, 2), "DDP: Tagged Buffer Error: STag not associated with DDP Stream");
        assert_eq!(name(1, 2, 2), "DDP: Untagged Buffer Error: Invalid MSN - no buffer available");
        assert_eq!(name(2, 0, 6), "LLP: MPA Error: Insufficient IRD resources");
        assert_eq!(name(2, 1, 2), "LLP: reserved: reserved");
        assert_eq!(format!("{:?}", TerminateError::MPA_CRC), "2/0/02 (LLP: MPA Error: MPA CRC does not match)");
    }
}
