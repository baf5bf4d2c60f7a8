//! Places limit concurrent requests and event streams. A session cannot take all places; some are
//! reserved for operators, and some for clients with a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::lock::locked;
use super::session::Session;
use super::tokens::Role;

/// The numbers of places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceLimits {
    /// An operator gets a place while fewer than this are taken.
    pub(crate) operators: usize,
    /// A viewer gets a place while fewer than this are taken.
    pub(crate) viewers: usize,
    /// A client without a session gets a place while fewer than this are taken.
    pub(crate) strangers: usize,
    /// The maximum for one session. Without tokens, the session that all clients share has no
    /// limit.
    pub(crate) session: usize,
}

/// Requests in progress. They are fewer than the connections, which leaves one for the health
/// check.
pub(crate) const REQUESTS: PlaceLimits = PlaceLimits { operators: 992, viewers: 896, strangers: 640, session: 128 };
/// Event streams of runs. They are fewer than the requests, which leaves some for pages.
pub(crate) const STREAMS: PlaceLimits = PlaceLimits { operators: 512, viewers: 384, strangers: 0, session: 32 };
/// Live pages of captures, with a thread each.
pub(crate) const FOLLOWERS: PlaceLimits = PlaceLimits { operators: 16, viewers: 12, strangers: 0, session: 4 };

/// The places of one kind. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: PlaceLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_owner: HashMap<Arc<str>, usize>,
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    inner: Arc<Inner>,
    owner: Option<Arc<str>>,
}

impl Places {
    pub(crate) fn new(limits: PlaceLimits) -> Self {
        Places(Arc::new(Inner { limits, taken: Mutex::default() }))
    }

    /// Takes a place for a client with this session; `None` if its limit is reached.
    pub(crate) fn take(&self, session: Option<&Session>) -> Option<Place> {
        let PlaceLimits { operators, viewers, strangers, session: of_session } = self.0.limits;
        let most = match session.map(|session| session.role) {
            Some(Role::Operator) => operators,
            Some(Role::Viewer) => viewers,
            None => strangers,
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
        Some(Place { inner: Arc::clone(&self.0), owner })
    }
}

impl Drop for Place {
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

    const LIMITS: PlaceLimits = PlaceLimits { operators: 6, viewers: 4, strangers: 2, session: 3 };

    #[test]
    fn reserves_places_for_clients_with_more_rights() {
        let places = Places::new(LIMITS);
        let [one, other] = ["one", "other"].map(|owner| session(Role::Viewer, Some(owner)));
        let operator = session(Role::Operator, Some("operator"));
        let mut kept: Vec<Place> = (0..2).filter_map(|_| places.take(None)).collect();
        assert_eq!((kept.len(), places.take(None).is_none()), (2, true));
        kept.extend([&one, &other].map(|viewer| places.take(Some(viewer)).unwrap()));
        assert!(places.take(Some(&one)).is_none());
        kept.extend([&operator, &operator].map(|operator| places.take(Some(operator)).unwrap()));
        assert!(places.take(Some(&operator)).is_none());
        kept.pop();
        assert!(places.take(Some(&one)).is_none() && places.take(Some(&operator)).is_some());
    }

    #[test]
    fn limits_a_session_unless_all_clients_share_it() {
        let places = Places::new(LIMITS);
        let owned = session(Role::Operator, Some("one"));
        let kept: Vec<Place> = (0..9).map_while(|_| places.take(Some(&owned))).collect();
        assert_eq!(kept.len(), LIMITS.session);
        assert!(places.take(Some(&session(Role::Operator, Some("other")))).is_some());
        drop(kept);
        assert!(locked(&places.0.taken).by_owner.is_empty(), "a session without a place takes no memory");
        let local = session(Role::Operator, None);
        let kept: Vec<Place> = (0..9).map_while(|_| places.take(Some(&local))).collect();
        assert_eq!(kept.len(), LIMITS.operators);
    }
}
