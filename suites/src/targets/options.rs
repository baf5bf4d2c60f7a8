//! How a run uses a target: time limits, capture, and the requests of a case to a builtin target.

use std::time::Duration;

use crate::model::{CaseLimits, Tier};

/// How a run uses a target.
#[derive(Debug, Clone)]
pub(crate) struct TargetOptions {
    /// The target file, as the command line named it.
    pub(crate) file: Option<String>,
    /// Factor for all time limits of the tester.
    pub(crate) time_scale: f64,
    /// Pause between start-up and the tester's first FPDU.
    pub(crate) settle_time: Duration,
    /// Network interface to capture on during a run, so that the evidence shows the wire.
    pub(crate) capture: Option<String>,
    /// Whether a builtin initiator requests the peer-to-peer model of RFC 6581. A case sets this
    /// field.
    pub(crate) requests_enhanced: bool,
    /// Whether a builtin target requests markers. A case or a run sets this field.
    pub(crate) requests_markers: bool,
    /// The limits of each case. A run sets this field.
    pub(crate) limits: CaseLimits,
}

impl Default for TargetOptions {
    fn default() -> Self {
        TargetOptions {
            file: None,
            time_scale: 1.0,
            settle_time: Duration::ZERO,
            capture: None,
            requests_enhanced: false,
            requests_markers: false,
            limits: Tier::Default.limits(),
        }
    }
}

impl TargetOptions {
    /// Returns `seconds` times the time scale.
    pub(crate) fn scaled(&self, seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds * self.time_scale).unwrap_or(Duration::MAX)
    }
}
