//! Finds reasons why a failure is no evidence about the target: the tester stood still during the
//! case, or the link to the target is lost.
//!
//! A target that does not answer counts as dead if its process has ended or its host answers over
//! TCP. It also counts as dead if the command `crashed` of its file reports a crash. Otherwise the
//! link counts as lost.

use std::net::SocketAddr;
use std::time::Duration;

use crate::stage::Log;
use crate::targets::{CRASHED_SECONDS, Target, host};

/// Seconds in which the target's host must answer.
const HOST_SECONDS: f64 = 2.0;

/// The state of the target when the script of a case has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetState {
    /// The target's address on the last connection.
    pub(super) address: Option<SocketAddr>,
    /// Whether the program that was started as the target has ended.
    pub(super) has_ended: bool,
}

/// Returns the reason why the failure is no evidence, if there is a reason. `stood_still` is the
/// tester's longest standstill since the case began.
pub(super) async fn excuse(
    target: &Target,
    log: &Log,
    state: TargetState,
    stood_still: Option<Duration>,
) -> Option<String> {
    if let Some(time) = stood_still {
        return Some(format!("The tester did not run for {} s", time.as_secs()));
    }
    // If the case does not end in silence, a message of the target arrived, so the link works. If
    // the program has ended, the target is dead.
    if !log.ends_in_silence() || state.has_ended {
        return None;
    }
    let address = state.address?;
    if host_is_there(target, state).await {
        return None;
    }
    if let Some(crashed) = target.remote().and_then(|remote| remote.crashed.as_ref())
        && crashed.run(target.scaled(CRASHED_SECONDS)).await.is_ok()
    {
        return None;
    }
    Some(format!("The host {} does not answer, so the link to it counts as lost", address.ip()))
}

/// Returns whether the target's host answers over TCP.
pub(super) async fn host_is_there(target: &Target, state: TargetState) -> bool {
    match state.address {
        Some(address) => {
            let within = target.scaled(HOST_SECONDS);
            // This machine may have no route to the target, if the tester has a TCP of its own.
            match target.host_link(address, within) {
                Some(link) => host::answers_over(link, address).await,
                None => host::answers(address, within).await,
            }
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Direction, Step, StepKind};

    /// No host has a multicast address for TCP, and the kernel sends no TCP segment to such an
    /// address.
    const NO_HOST: &str = "224.0.0.1:7174";

    fn target(crashed: &str) -> Target {
        let text = format!("name = \"nic\"\nkind = \"tcp\"\naddress = \"{NO_HOST}\"\ntime_scale = 0.1\n{crashed}");
        Target::from_toml("nic.toml", &text).unwrap()
    }

    fn log(kind: StepKind, direction: Direction) -> Log {
        let step = Step { at_ns: 0, connection: 1, direction, kind, text: String::new(), octets: None };
        let mut log = Log::default();
        log.steps.push(step);
        log
    }

    fn silent() -> Log {
        log(StepKind::Silence, Direction::Observed)
    }

    fn state(address: &str) -> TargetState {
        TargetState { address: Some(address.parse().unwrap()), has_ended: false }
    }

    #[tokio::test]
    async fn a_standstill_of_the_tester_excuses_any_failure() {
        let answered = log(StepKind::Reset, Direction::Received);
        let why = excuse(&target(""), &answered, state("127.0.0.1:9"), Some(Duration::from_secs(3))).await;
        assert_eq!(why.as_deref(), Some("The tester did not run for 3 s"));
        assert_eq!(excuse(&target(""), &answered, state(NO_HOST), None).await, None);
    }

    #[tokio::test]
    async fn silence_is_the_targets_only_where_its_host_is_there() {
        let lost = excuse(&target(""), &silent(), state(NO_HOST), None).await;
        assert_eq!(lost.unwrap(), "The host 224.0.0.1 does not answer, so the link to it counts as lost");
        // The host 127.0.0.1 answers with a reset.
        assert_eq!(excuse(&target(""), &silent(), state("127.0.0.1:9"), None).await, None);
        let ended = TargetState { has_ended: true, ..state(NO_HOST) };
        assert_eq!(excuse(&target(""), &silent(), ended, None).await, None);
    }

    #[tokio::test]
    async fn a_crash_is_the_targets_own() {
        let crashed = target("crashed = [\"true\"]\n");
        assert_eq!(excuse(&crashed, &silent(), state(NO_HOST), None).await, None);
        let not_crashed = target("crashed = [\"false\"]\n");
        assert!(excuse(&not_crashed, &silent(), state(NO_HOST), None).await.is_some());
    }
}
