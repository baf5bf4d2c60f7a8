//! Places for what is under way at the same time: requests, event streams. No session takes all of them, viewers leave some
//! to operators, and clients without a session leave some to viewers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{Role, Session, held};

/// How many places there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceLimits {
    /// All that are under way when an operator takes one.
    pub(crate) operators: usize,
    /// All that are under way when a viewer takes one.
    pub(crate) viewers: usize,
    /// All that are under way when a client without a session takes one.
    pub(crate) strangers: usize,
    /// Those of one session. Without tokens all clients share a session, which has no such limit.
    pub(crate) session: usize,
}

/// Requests under way. They are fewer than the connections, so that one is left for the health check.
pub(crate) const REQUESTS: PlaceLimits = PlaceLimits { operators: 992, viewers: 896, strangers: 640, session: 128 };
/// Event streams of runs. They are fewer than the requests, so that pages are served beside them.
pub(crate) const STREAMS: PlaceLimits = PlaceLimits { operators: 512, viewers: 384, strangers: 0, session: 32 };
/// Captures that are followed, with a thread each.
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

/// A place; dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Place {
    inner: Arc<Inner>,
    owner: Option<Arc<str>>,
}

impl Places {
    pub(crate) fn new(limits: PlaceLimits) -> Self {
        Places(Arc::new(Inner { limits, taken: Mutex::default() }))
    }

    /// A place for a client with this session; `None` if there is none for it now.
    pub(crate) fn take(&self, session: Option<&Session>) -> Option<Place> {
        let PlaceLimits { operators, viewers, strangers, session: of_session } = self.0.limits;
        let most = match session.map(|session| session.role) {
            Some(Role::Operator) => operators,
            Some(Role::Viewer) => viewers,
            None => strangers,
        };
        let owner = session.and_then(|session| session.owner.clone());
        let mut taken = held(&self.0.taken);
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
        let mut taken = held(&self.inner.taken);
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
    fn leaves_places_to_those_with_more_rights() {
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
    fn bounds_one_session_unless_all_share_it() {
        let places = Places::new(LIMITS);
        let owned = session(Role::Operator, Some("one"));
        let kept: Vec<Place> = (0..9).map_while(|_| places.take(Some(&owned))).collect();
        assert_eq!(kept.len(), LIMITS.session);
        assert!(places.take(Some(&session(Role::Operator, Some("other")))).is_some());
        drop(kept);
        assert!(held(&places.0.taken).by_owner.is_empty(), "nothing is kept of a session without a place");
        let local = session(Role::Operator, None);
        let kept: Vec<Place> = (0..9).map_while(|_| places.take(Some(&local))).collect();
        assert_eq!(kept.len(), LIMITS.operators);
    }
}
