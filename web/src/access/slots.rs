//! Limits concurrent requests and event streams: each request and each stream needs a slot. On a
//! server with tokens, one session cannot take all slots. Some slots are reserved for operators,
//! and some for clients with a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::session::Session;
use super::tokens::Role;
use crate::lock::locked;

/// The limits for each kind of client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotLimits {
    /// An operator gets a slot while fewer than this number of slots are taken.
    pub(crate) operators: usize,
    /// A viewer gets a slot while fewer than this number of slots are taken.
    pub(crate) viewers: usize,
    /// A client without a session gets a slot while fewer than this number of slots are taken.
    pub(crate) anonymous: usize,
    /// The maximum number of slots of one session. On a server without tokens, this limit does not
    /// apply.
    pub(crate) session: usize,
}

/// Limits for requests in progress. These limits are lower than the limit for connections, so a
/// connection remains for the health check.
pub(crate) const REQUESTS: SlotLimits = SlotLimits { operators: 992, viewers: 896, anonymous: 640, session: 128 };
/// Limits for event streams of runs. These limits are lower than the limits for requests, so slots
/// remain for pages.
pub(crate) const STREAMS: SlotLimits = SlotLimits { operators: 512, viewers: 384, anonymous: 0, session: 32 };
/// Limits for live pages of captures. Each live page has a thread.
pub(crate) const FOLLOWERS: SlotLimits = SlotLimits { operators: 16, viewers: 12, anonymous: 0, session: 4 };

/// The slots of one kind. Cheap to clone. Clones share the slots.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: SlotLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_owner: HashMap<Arc<str>, usize>,
}

/// A slot. Dropping this value releases the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    inner: Arc<Inner>,
    owner: Option<Arc<str>>,
}

impl Slots {
    pub(crate) fn new(limits: SlotLimits) -> Self {
        Slots(Arc::new(Inner { limits, taken: Mutex::default() }))
    }

    /// Takes a slot for a client with this session. Returns `None` if the limit for this client is
    /// reached.
    pub(crate) fn take(&self, session: Option<&Session>) -> Option<Slot> {
        let SlotLimits { operators, viewers, anonymous, session: of_session } = self.0.limits;
        let most = match session.map(|session| session.role) {
            Some(Role::Operator) => operators,
            Some(Role::Viewer) => viewers,
            None => anonymous,
        };
        let owner = session.and_then(|session| session.owner.clone());
        let mut taken = locked(&self.0.taken);
        if taken.all >= most {
            return None;
        }
        if let Some(owner) = &owner {
            let own = taken.by_owner.entry(Arc::clone(owner)).or_default();
            if *own >= of_session {
                return None;
            }
            *own += 1;
        }
        taken.all += 1;
        Some(Slot { inner: Arc::clone(&self.0), owner })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = locked(&self.inner.taken);
        taken.all -= 1;
        if let Some(owner) = &self.owner
            && let Some(own) = taken.by_owner.get_mut(owner)
        {
            *own -= 1;
            if *own == 0 {
                taken.by_owner.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(role: Role, owner: Option<&str>) -> Session {
        Session { role, form_key: None, owner: owner.map(Arc::from) }
    }

    const LIMITS: SlotLimits = SlotLimits { operators: 6, viewers: 4, anonymous: 2, session: 3 };

    #[test]
    fn reserves_slots_for_clients_with_more_rights() {
        let slots = Slots::new(LIMITS);
        let [one, other] = ["one", "other"].map(|owner| session(Role::Viewer, Some(owner)));
        let operator = session(Role::Operator, Some("operator"));
        let mut kept: Vec<Slot> = (0..2).filter_map(|_| slots.take(None)).collect();
        assert_eq!((kept.len(), slots.take(None).is_none()), (2, true));
        kept.extend([&one, &other].map(|viewer| slots.take(Some(viewer)).unwrap()));
        assert!(slots.take(Some(&one)).is_none());
        kept.extend([&operator, &operator].map(|operator| slots.take(Some(operator)).unwrap()));
        assert!(slots.take(Some(&operator)).is_none());
        kept.pop();
        assert!(slots.take(Some(&one)).is_none() && slots.take(Some(&operator)).is_some());
    }

    #[test]
    fn limits_a_session_unless_all_clients_share_it() {
        let slots = Slots::new(LIMITS);
        let owned = session(Role::Operator, Some("one"));
        let kept: Vec<Slot> = (0..9).map_while(|_| slots.take(Some(&owned))).collect();
        assert_eq!(kept.len(), LIMITS.session);
        assert!(slots.take(Some(&session(Role::Operator, Some("other")))).is_some());
        drop(kept);
        assert!(locked(&slots.0.taken).by_owner.is_empty(), "a session without a slot takes no memory");
        let local = session(Role::Operator, None);
        let kept: Vec<Slot> = (0..9).map_while(|_| slots.take(Some(&local))).collect();
        assert_eq!(kept.len(), LIMITS.operators);
    }
}
