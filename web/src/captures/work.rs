//! The threads that read captures, and whose work comes next.
//!
//! Reading may take a minute, so a queue in the order of arrival would let one client hold all others up. An owner has one
//! thread at a time and a few places in the queue; the owner whose turn is longest ago comes first. Operators come before
//! viewers and have places of their own, and reading ahead comes last.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::Source;
use crate::access::{Role, Session};

/// How much work there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkLimits {
    /// Work at a time.
    pub(crate) threads: usize,
    /// Work at a time and work that waits.
    pub(crate) places: usize,
    /// Those of them that are for operators only.
    pub(crate) reserved: usize,
    /// Those that one owner may have.
    pub(crate) owner: usize,
}

/// Who wants work done.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    owner: Owner,
    rank: Rank,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    Session(Arc<str>),
    /// Without tokens all clients share a session: those who look into one capture count together.
    Capture(PathBuf),
    ReadsAhead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Operator,
    Viewer,
    ReadsAhead,
}

impl Asker {
    /// A client that looks into a capture.
    pub(crate) fn new(session: &Session, source: &Source) -> Self {
        let owner = session.owner.clone().map_or_else(|| Owner::Capture(source.path.clone()), Owner::Session);
        let rank = if session.role == Role::Operator { Rank::Operator } else { Rank::Viewer };
        Asker { owner, rank }
    }

    /// This server, which reads captures that somebody may look into.
    pub(crate) fn reads_ahead() -> Self {
        Asker { owner: Owner::ReadsAhead, rank: Rank::ReadsAhead }
    }
}

/// Cheap to clone; clones share the threads.
#[derive(Debug, Clone)]
pub(crate) struct Workers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: WorkLimits,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Tickets that are out.
    taken: usize,
    accounts: HashMap<Owner, Account>,
    /// Owners of the work under way.
    running: Vec<Owner>,
    waiting: Vec<Waiting>,
    clock: u64,
}

/// What an owner with tickets has.
#[derive(Debug, Default)]
struct Account {
    taken: usize,
    /// When its last turn was.
    turn: u64,
}

#[derive(Debug)]
struct Waiting {
    asker: Asker,
    go: oneshot::Sender<()>,
}

/// A right to work, soon.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    asker: Asker,
}

/// A thread that is taken.
struct Turn {
    shared: Arc<Shared>,
    owner: Owner,
}

impl Workers {
    pub(crate) fn new(limits: WorkLimits) -> Self {
        Workers(Arc::new(Shared { limits, queue: Mutex::default() }))
    }

    /// `None`: too much waits already.
    pub(crate) fn ticket(&self, asker: Asker) -> Option<Ticket> {
        let WorkLimits { places, reserved, owner: of_owner, .. } = self.0.limits;
        let most = if asker.rank == Rank::Operator { places } else { places - reserved };
        let mut queue = self.0.queue();
        let own = queue.accounts.get(&asker.owner).map_or(0, |account| account.taken);
        if queue.taken >= most || own >= of_owner {
            return None;
        }
        queue.taken += 1;
        queue.accounts.entry(asker.owner.clone()).or_default().taken += 1;
        Some(Ticket { shared: Arc::clone(&self.0), asker })
    }
}

impl Ticket {
    /// Does the work when it is its turn; `None` where it broke off.
    pub(crate) async fn work<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (go, turn) = oneshot::channel();
        let owner = self.asker.owner.clone();
        {
            let mut queue = self.shared.queue();
            queue.waiting.push(Waiting { asker: self.asker.clone(), go });
            queue.give_turns(self.shared.limits.threads);
        }
        turn.await.ok()?;
        let turn = Turn { shared: Arc::clone(&self.shared), owner };
        // The thread is taken until the work ends, whoever waits for it or does not.
        let worked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        worked.await.inspect_err(|error| tracing::error!("the reader of a capture failed: {error}")).ok()
    }
}

impl Queue {
    fn give_turns(&mut self, threads: usize) {
        while self.running.len() < threads {
            let Some(at) = self.next() else { return };
            let Waiting { asker, go } = self.waiting.remove(at);
            if go.send(()).is_ok() {
                self.clock += 1;
                if let Some(account) = self.accounts.get_mut(&asker.owner) {
                    account.turn = self.clock;
                }
                self.running.push(asker.owner);
            }
        }
    }

    fn next(&self) -> Option<usize> {
        let turn = |owner: &Owner| self.accounts.get(owner).map_or(0, |account| account.turn);
        let waiting = self.waiting.iter().enumerate();
        let may = waiting.filter(|(_, waiting)| !self.running.contains(&waiting.asker.owner));
        let next = may.min_by_key(|(at, waiting)| (waiting.asker.rank, turn(&waiting.asker.owner), *at));
        next.map(|(at, _)| at)
    }
}

impl Shared {
    /// Nothing under this lock panics half-way.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        if let Some(at) = queue.running.iter().position(|owner| *owner == self.owner) {
            queue.running.swap_remove(at);
        }
        queue.give_turns(self.shared.limits.threads);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.taken -= 1;
        if let Some(account) = queue.accounts.get_mut(&self.asker.owner) {
            account.taken -= 1;
            if account.taken == 0 {
                queue.accounts.remove(&self.asker.owner);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    pub(in crate::captures) fn asker(owner: &str, role: Role) -> Asker {
        let session = Session { role, owner: Some(owner.into()), form_key: None };
        let source = Source { path: PathBuf::new(), len: 0, changed: std::time::UNIX_EPOCH };
        Asker::new(&session, &source)
    }

    /// Work that begins, tells its name, and ends when it is told to.
    struct Bench {
        workers: Workers,
        begun: UnboundedSender<&'static str>,
        begins: UnboundedReceiver<&'static str>,
    }

    impl Bench {
        fn new(limits: WorkLimits) -> Self {
            let (begun, begins) = unbounded_channel();
            Bench { workers: Workers::new(limits), begun, begins }
        }

        fn add(&self, name: &'static str, asker: Asker) -> mpsc::Sender<()> {
            let (end, ends) = mpsc::channel();
            let (ticket, begun) = (self.workers.ticket(asker).expect(name), self.begun.clone());
            tokio::spawn(ticket.work(move || {
                let _ = begun.send(name);
                let _ = ends.recv();
            }));
            end
        }

        async fn next(&mut self) -> &'static str {
            self.begins.recv().await.unwrap()
        }
    }

    #[tokio::test]
    async fn a_crowd_of_one_owner_holds_up_nobody_else() {
        let mut bench = Bench::new(WorkLimits { threads: 2, places: 10, reserved: 2, owner: 4 });
        let many = ["1", "2", "3", "4"].map(|name| bench.add(name, asker("crowd", Role::Viewer)));
        assert_eq!(bench.next().await, "1");
        assert!(bench.workers.ticket(asker("crowd", Role::Viewer)).is_none(), "it has its places");
        // The second thread is free for another owner, who need not wait for the crowd.
        let other = bench.add("other", asker("other", Role::Viewer));
        assert_eq!(bench.next().await, "other");
        // While it is busy, one more owner comes after the one that works, and before the rest of the crowd.
        let third = bench.add("third", asker("third", Role::Viewer));
        tokio::task::yield_now().await;
        drop(many[0].clone());
        many[0].send(()).unwrap();
        assert_eq!(bench.next().await, "third");
        drop((many, other, third));
    }

    #[tokio::test]
    async fn operators_come_first_and_have_places_of_their_own() {
        let mut bench = Bench::new(WorkLimits { threads: 1, places: 5, reserved: 2, owner: 4 });
        let first = bench.add("first", asker("a", Role::Viewer));
        assert_eq!(bench.next().await, "first");
        let second = bench.add("second", asker("b", Role::Viewer));
        let third = bench.add("ahead", Asker::reads_ahead());
        assert!(bench.workers.ticket(asker("c", Role::Viewer)).is_none());
        let operator = bench.add("operator", asker("d", Role::Operator));
        tokio::task::yield_now().await;
        for (end, next) in [(first, "operator"), (operator, "second"), (second, "ahead")] {
            drop(end);
            assert_eq!(bench.next().await, next);
        }
        drop(third);
    }

    #[tokio::test]
    async fn without_tokens_each_capture_has_its_turns() {
        let local = Session { role: Role::Operator, owner: None, form_key: None };
        let of = |name: &str| Asker::new(&local, &Source { path: name.into(), len: 0, changed: std::time::UNIX_EPOCH });
        let mut bench = Bench::new(WorkLimits { threads: 2, places: 10, reserved: 2, owner: 2 });
        let ends = [bench.add("a", of("a")), bench.add("again", of("a"))];
        assert_eq!(bench.next().await, "a");
        assert!(bench.workers.ticket(of("a")).is_none());
        let other = bench.add("b", of("b"));
        assert_eq!(bench.next().await, "b");
        drop((ends, other));
    }
}
