//! Whether the cases of a run reach the target.
//!
//! If the first case that tries cannot reach the target, the other cases do not try. If the target
//! goes away later, each case tries, because the target can come back. A target that does not come
//! back until the end of the run is down, too. One refused connection in the last case does not
//! show this, so weft tries once more before the run ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::cancelled;
use super::context::RunContext;
use crate::model::{CaseKey, Event, Role};
use crate::stage::Stage;
use crate::targets::{Service, Target, down};

/// The attempts of all cases to reach the target.
#[derive(Debug, Default)]
pub(super) struct Reachability(Mutex<Attempts>);

#[derive(Debug, Default)]
struct Attempts {
    /// The last case that reached the target.
    last: Option<CaseKey>,
    /// Why no case can reach the target, as the explanation of a case.
    never: Option<String>,
    /// Why the cases after `last` could not reach the target, as a part of a headline.
    lost: Option<String>,
    /// The case after which the target was dead and could not be restarted, and the reason.
    not_restarted: Option<(CaseKey, String)>,
}

impl Reachability {
    /// Returns the state for a target whose address cannot be resolved.
    pub(super) fn unresolved(why: &str) -> Self {
        let never = Some(format!("The target is unreachable: {why}."));
        Reachability(Mutex::new(Attempts { never, lost: Some(why.to_owned()), ..Attempts::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Attempts> {
        // No change to `Attempts` panics halfway, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether a case has reached the target. Returns the headline of the run if the case is
    /// the first that tried, and the target is down.
    pub(super) fn note(&self, key: &CaseKey, target: &Target, stage: &Stage) -> Option<String> {
        let log = stage.log();
        let mut attempts = self.lock();
        if log.connections > 0 || stage.connections.has_responded {
            (attempts.last, attempts.lost) = (Some(key.clone()), None);
            return None;
        }
        // A script that made no connection shows nothing.
        let why = log.refused.as_ref()?;
        let text = log.unreached().unwrap_or(why);
        if attempts.last.is_some() {
            // The agent has answered, even if no connection to the NIC was made.
            if target.service() != Service::Agent {
                attempts.lost.get_or_insert_with(|| text.to_owned());
            }
            return None;
        }
        let is_first = attempts.never.is_none();
        attempts.never.get_or_insert_with(|| format!("The first case found that the target is unreachable: {why}."));
        attempts.lost.get_or_insert_with(|| text.to_owned());
        is_first.then(|| down::headline(text))
    }

    /// Notes that the target was dead after a case, and could not be restarted.
    pub(super) fn note_failed_restart(&self, key: &CaseKey, why: &str) {
        self.lock().not_restarted.get_or_insert_with(|| (key.clone(), why.to_owned()));
    }

    /// Returns why no case can reach the target, as the explanation of a case.
    pub(super) fn never_reached(&self) -> Option<String> {
        self.lock().never.clone()
    }

    /// Returns the last case that reached the target, if later cases could not reach it and no
    /// restart of the target failed.
    fn lost_after(&self) -> Option<CaseKey> {
        let attempts = self.lock();
        let is_lost = attempts.lost.is_some() && attempts.not_restarted.is_none();
        attempts.last.clone().filter(|_| is_lost)
    }

    /// Notes that the target is reachable again.
    fn note_return(&self) {
        self.lock().lost = None;
    }

    /// Returns the headline of the run if the target is down.
    pub(super) fn headline(&self) -> Option<String> {
        let attempts = self.lock();
        if let Some((key, why)) = &attempts.not_restarted {
            return Some(down::headline(&format!("after {key}, its restart failed: {why}")));
        }
        let why = attempts.lost.as_ref()?;
        Some(match &attempts.last {
            Some(key) => down::headline(&format!("{why} after {key}")),
            None => down::headline(why),
        })
    }
}

impl RunContext {
    /// If the last cases could not reach the target, tries once more. A target that answers is not
    /// down. Does nothing for a builtin target and for a target that has to connect to the tester.
    /// Ends early if the run is cancelled.
    pub(super) async fn try_lost_target_again(&self, cancel: &mut Option<watch::Receiver<bool>>) {
        let Some(key) = self.reach.lost_after() else { return };
        if self.target.remote().is_none() || self.target.role() != Role::Responder {
            return;
        }
        // Without a link there is no attempt, so the target stays lost.
        let Ok(link) = self.live.link(&self.target) else { return };
        // The events of this stage are ignored.
        let mut stage = Stage::new(self.target.clone(), link, key, Arc::new(|_: &Event| {}));
        tokio::select! {
            biased;
            () = cancelled(cancel) => return,
            _ = stage.good_exchange(Vec::new()) => {}
        }
        // The exchange may fail. One connection is enough, as in a case.
        if stage.log().connections > 0 || stage.connections.has_responded {
            self.reach.note_return();
        }
        stage.leave().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(last: Option<&str>, lost: Option<&str>) -> Reachability {
        let (last, lost) = (last.map(CaseKey::new), lost.map(str::to_owned));
        Reachability(Mutex::new(Attempts { last, lost, ..Attempts::default() }))
    }

    #[test]
    fn only_a_target_that_went_away_is_tried_again() {
        let (last, lost) = (Some("mpa/x/one"), Some("192.0.2.7:7174 refused the connection"));
        let gone = reach(last, lost);
        assert_eq!(gone.lost_after(), last.map(CaseKey::new));
        let headline = "target is down: 192.0.2.7:7174 refused the connection after mpa/x/one";
        assert_eq!(gone.headline().as_deref(), Some(headline));
        gone.note_return();
        assert_eq!((gone.lost_after(), gone.headline()), (None, None));
        // The first target was never reached. The second target is still reachable.
        assert_eq!((reach(None, lost).lost_after(), reach(last, None).lost_after()), (None, None));
        let dead = reach(last, lost);
        dead.note_failed_restart(&CaseKey::new("mpa/x/two"), "./power-cycle: exit status: 1");
        assert_eq!(dead.lost_after(), None);
    }

    #[test]
    fn a_failed_restart_is_the_headline() {
        let reach = Reachability::default();
        assert_eq!(reach.headline(), None);
        reach.note_failed_restart(&CaseKey::new("mpa/x/one"), "./power-cycle: exit status: 1");
        reach.note_failed_restart(&CaseKey::new("mpa/x/two"), "later");
        let expected = "target is down: after mpa/x/one, its restart failed: ./power-cycle: exit status: 1";
        assert_eq!(reach.headline().as_deref(), Some(expected));
    }

    #[test]
    fn an_address_without_a_host_is_the_headline() {
        let reach = Reachability::unresolved("nic.invalid:1 cannot be resolved: unknown");
        let never = "The target is unreachable: nic.invalid:1 cannot be resolved: unknown.";
        assert_eq!(reach.never_reached().as_deref(), Some(never));
        let headline = "target is down: nic.invalid:1 cannot be resolved: unknown";
        assert_eq!(reach.headline().as_deref(), Some(headline));
    }
}
