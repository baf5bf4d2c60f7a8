//! How a run uses a target: time limits, capture, and the requests of a case to a builtin target.

use std::time::Duration;

use super::LimitsTable;
use crate::model::{Capability, CaseLimits, Labels, ProbedFacts, Tier};

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
    /// The limits that the target file sets.
    pub(crate) own_limits: LimitsTable,
    /// The fields that the target file lacks.
    pub(crate) unstated: UnstatedFields,
    /// The facts that probes found out before the run, as text.
    pub(crate) probed: Option<String>,
    /// The same facts, as a run stores them.
    pub(crate) probed_facts: Option<ProbedFacts>,
    /// The capabilities that the target lost, if the facts are those of an earlier run. `None` if
    /// the run has to find out what the target lost.
    pub(crate) lost_capabilities: Option<Vec<Capability>>,
    /// The labels of the run.
    pub(crate) labels: Labels,
}

/// Fields that a target file lacks. A run probes the target to find them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UnstatedFields {
    /// Neither the file nor a preset has capabilities.
    pub(crate) capabilities: bool,
    pub(crate) service: bool,
    /// The file does not describe the MPA Request.
    pub(crate) request: bool,
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
            own_limits: LimitsTable::default(),
            unstated: UnstatedFields::default(),
            probed: None,
            probed_facts: None,
            lost_capabilities: None,
            labels: Labels::new(),
        }
    }
}

impl TargetOptions {
    /// Sets the limits of each case to those of a tier. Limits that the target file sets replace
    /// them.
    pub(crate) fn use_limits_of(&mut self, tier: Tier) {
        let LimitsTable { steps, sent_mib, received_mib, evidence_mib, seconds } = self.own_limits;
        let usual = tier.limits();
        let count = |own: Option<u32>, usual: usize| own.map_or(usual, |own| usize::try_from(own).unwrap_or(usual));
        let octets = |mib: Option<u32>, usual: usize| count(mib, usual >> 20) << 20;
        self.limits = CaseLimits {
            steps: count(steps, usual.steps),
            sent: octets(sent_mib, usual.sent),
            received: octets(received_mib, usual.received),
            traffic: octets(evidence_mib, usual.traffic),
            seconds,
            ..usual
        };
    }

    /// Returns `seconds` times the time scale.
    pub(crate) fn scaled(&self, seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds * self.time_scale).unwrap_or(Duration::MAX)
    }
}
