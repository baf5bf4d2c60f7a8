//! Presets for known implementations: defaults for a target file, and remarks for its author.
//!
//! A preset describes the behaviour of a public driver at connection time. It contains no verdicts,
//! and makes no case pass.

use weft_core::wire::mpa::startup::MAX_PD_LENGTH;

use crate::model::Capability;

/// Defaults for an implementation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Name of the preset in a target file.
    pub name: &'static str,
    /// Description of the implementation.
    pub about: &'static str,
    /// Capabilities of the implementation.
    pub capabilities: &'static [Capability],
    /// Pause in milliseconds between the target's Reply and the tester's first FPDU.
    pub settle_ms: u32,
    /// Factor for the tester's time limits.
    pub time_scale: f64,
    /// Largest private data in bytes that the target accepts, including the 4 bytes of RFC 6581.
    pub private_data: u16,
    /// Other facts that the author of a target file should know.
    pub remarks: &'static [&'static str],
}

use Capability::{Crc, Markers, Revision1, Revision2};

/// The presets, by name of the driver.
pub const PRESETS: [Preset; 4] = [
    Preset {
        name: "siw",
        about: "the Linux kernel's soft-iWARP driver",
        capabilities: &[Crc, Revision1, Revision2],
        settle_ms: 200,
        time_scale: 1.0,
        private_data: 256,
        remarks: &[
            "does not request CRC, and answers C=1 with C=1; without CRC its CRC fields are zero",
            "does not send markers, and rejects a Request with M=1",
            "does not process bytes that arrive directly after its Reply, so the preset sets `settle_ms`",
            "offers ready-to-receive by Write and Read and prefers Write; ORD and IRD up to 128",
            "start-up timers: 5 s for a Request, 10 s for a Reply",
            "as initiator, its kernel crashes on a Reply with more than 256 bytes of private data, or with S=1 and no private data; configure `restart`",
        ],
    },
    Preset {
        name: "cxgb4",
        about: "Chelsio's T4 and later NICs",
        capabilities: &[Crc, Markers, Revision1, Revision2],
        settle_ms: 20,
        // The driver's start-up timer is 60 s. Without a factor, a case waits only 15 s for the
        // close that this timer causes.
        time_scale: 5.0,
        private_data: 256,
        remarks: &[
            "requests CRC; does not request markers, but sends them if requested",
            "as initiator, tries revision 1 if its revision 2 Request is answered by a reset, but not after a FIN",
            "in revision 1, its peer-to-peer setting sends a zero-length Read that was not negotiated",
            "offers only the ready-to-receive message that it is configured for",
        ],
    },
    Preset {
        name: "irdma",
        about: "Intel's X722 and E810 NICs",
        capabilities: &[Crc, Markers, Revision1, Revision2],
        settle_ms: 20,
        time_scale: 1.0,
        private_data: MAX_PD_LENGTH,
        remarks: &[
            "supports revision 2 only in the peer-to-peer model; set revision = 1, or set rtr in [startup.enhanced]",
            "requests markers if its out-of-order mode is on; a good exchange with the echo service works only if this mode is off",
            "expects each start-up frame in one TCP segment",
            "offers ready-to-receive by Write and Read and prefers Read",
        ],
    },
    Preset {
        name: "qedr",
        about: "Marvell's FastLinQ 41000 NICs (iWARP mode)",
        capabilities: &[Crc, Revision1, Revision2],
        settle_ms: 20,
        time_scale: 1.0,
        private_data: MAX_PD_LENGTH,
        remarks: &["requests CRC", "offers ready-to-receive by Send, Write and Read and prefers Write"],
    },
];

impl Preset {
    /// No preset.
    pub(crate) const NONE: Preset = Preset {
        name: "",
        about: "",
        capabilities: &[],
        settle_ms: 20,
        time_scale: 1.0,
        private_data: MAX_PD_LENGTH,
        remarks: &[],
    };

    /// Returns the preset of that name, or `None` if there is no such preset.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}
