//! Whether the cases of a run reach the target.
//!
//! If the first case that tries cannot reach the target, the other cases do not try. If the target
//! goes away later, each case tries, because the target can come back. A target that does not come
//! back until the end of the run is down, too.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::CaseKey;
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

#[cfg(test)]
mod tests {
    use super::*;

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
