//! How a run uses a target: its pace, and what a case requests of a builtin target.

use std::time::Duration;

/// How a run uses a target.
#[derive(Debug, Clone)]
pub(crate) struct TargetOptions {
    /// Factor on every time that the tester waits.
    pub(crate) time_scale: f64,
    /// The time between start-up and the tester's first FPDU.
    pub(crate) settle: Duration,
    /// The interface that is captured on during a run, for evidence from the wire.
    pub(crate) capture: Option<String>,
    /// A builtin initiator requests the peer-to-peer model of RFC 6581, for the cases that need it.
    pub(crate) requests_enhanced: bool,
    /// A builtin target requests markers, for the cases that need it, and the tester's own
    /// exchanges have them.
    pub(crate) requests_markers: bool,
}

impl Default for TargetOptions {
    fn default() -> Self {
        TargetOptions {
            time_scale: 1.0,
            settle: Duration::ZERO,
            capture: None,
            requests_enhanced: false,
            requests_markers: false,
        }
    }
}

impl TargetOptions {
    /// `seconds`, stretched by the time scale.
    pub(crate) fn scaled(&self, seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds * self.time_scale).unwrap_or(Duration::MAX)
    }
}
