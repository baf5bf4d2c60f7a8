//! Schedules passes over captures on a few threads. A pass reads one capture.
//!
//! A pass can take a minute, so with a first-in-first-out queue one client could block all other
//! clients. An owner, usually a session, has at most one running pass and a few waiting passes.
//! Operators come before viewers. Background reading comes last. Among owners of the same rank, the
//! owner whose last pass began longest ago comes first. Each running or waiting pass needs a
//! ticket, and some tickets are reserved for operators.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::source::Source;
use crate::access::{Role, Session};
use crate::lock::locked;

/// The limits of the scheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkLimits {
    /// The maximum number of running passes.
    pub(crate) threads: usize,
    /// The maximum number of running and waiting passes.
    pub(crate) tickets: usize,
    /// The number of tickets that only operators can get.
    pub(crate) reserved: usize,
    /// The maximum number of running and waiting passes of one owner.
    pub(crate) owner: usize,
}

/// The client that requests a pass, or the server itself.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    owner: Owner,
    rank: Rank,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    Session(Arc<str>),
    /// All clients that open the capture at this path, as one owner. Used on a server without
    /// tokens, which cannot distinguish its clients.
    Capture(PathBuf),
    Background,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Operator,
    Viewer,
    Background,
}

impl Requester {
    /// Makes the requester for a client that opens a capture.
    pub(crate) fn new(session: &Session, source: &Source) -> Self {
        let owner = session.owner.clone().map_or_else(|| Owner::Capture(source.path.clone()), Owner::Session);
        let rank = if session.role == Role::Operator { Rank::Operator } else { Rank::Viewer };
        Requester { owner, rank }
    }

    /// Makes the requester for the server, which reads captures in the background.
    pub(crate) fn background() -> Self {
        Requester { owner: Owner::Background, rank: Rank::Background }
    }
}

/// The scheduler of passes. Cheap to clone. Clones share the threads.
#[derive(Debug, Clone)]
pub(crate) struct Workers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: WorkLimits,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number of tickets in use.
    taken: usize,
    accounts: HashMap<Owner, Account>,
    /// Owners of the running passes.
    running: Vec<Owner>,
    waiting: Vec<Waiting>,
    clock: u64,
}

/// The state of an owner with tickets.
#[derive(Debug, Default)]
struct Account {
    /// The number of the owner's tickets.
    taken: usize,
    /// The value of the queue's clock when the owner's last pass began.
    last_start: u64,
}

#[derive(Debug)]
struct Waiting {
    requester: Requester,
    go: oneshot::Sender<()>,
}

/// The permission to run one pass. Dropping the ticket returns the permission.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    requester: Requester,
}

/// A running pass, which uses a thread. Dropping this value frees the thread and starts the next
/// passes.
struct RunningPass {
    shared: Arc<Shared>,
    owner: Owner,
}

impl Workers {
    pub(crate) fn new(limits: WorkLimits) -> Self {
        Workers(Arc::new(Shared { limits, queue: Mutex::default() }))
    }

    /// Returns a ticket, or `None` if a limit is reached.
    pub(crate) fn ticket(&self, requester: Requester) -> Option<Ticket> {
        let WorkLimits { tickets, reserved, owner: of_owner, .. } = self.0.limits;
        let most = if requester.rank == Rank::Operator { tickets } else { tickets - reserved };
        let mut queue = locked(&self.0.queue);
        let own = queue.accounts.get(&requester.owner).map_or(0, |account| account.taken);
        if queue.taken >= most || own >= of_owner {
            return None;
        }
        queue.taken += 1;
        queue.accounts.entry(requester.owner.clone()).or_default().taken += 1;
        Some(Ticket { shared: Arc::clone(&self.0), requester })
    }
}

impl Ticket {
    /// Waits until a thread is free for the owner, then runs `work` on that thread. Returns `None`
    /// if `work` panicked.
    pub(crate) async fn work<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (go, started) = oneshot::channel();
        let owner = self.requester.owner.clone();
        {
            let mut queue = locked(&self.shared.queue);
            queue.waiting.push(Waiting { requester: self.requester.clone(), go });
            queue.start_waiting(self.shared.limits.threads);
        }
        started.await.ok()?;
        let pass = RunningPass { shared: Arc::clone(&self.shared), owner };
        // The thread is in use until the work ends, even if the client is gone.
        let worked = tokio::task::spawn_blocking(move || {
            let _pass = pass;
            work()
        });
        worked.await.inspect_err(|error| tracing::error!("the reader of a capture failed: {error}")).ok()
    }
}

impl Queue {
    fn start_waiting(&mut self, threads: usize) {
        while self.running.len() < threads {
            let Some(at) = self.next() else { return };
            let Waiting { requester, go } = self.waiting.remove(at);
            if go.send(()).is_ok() {
                self.clock += 1;
                if let Some(account) = self.accounts.get_mut(&requester.owner) {
                    account.last_start = self.clock;
                }
                self.running.push(requester.owner);
            }
        }
    }

    fn next(&self) -> Option<usize> {
        let last_start = |owner: &Owner| self.accounts.get(owner).map_or(0, |account| account.last_start);
        let waiting = self.waiting.iter().enumerate();
        let startable = waiting.filter(|(_, waiting)| !self.running.contains(&waiting.requester.owner));
        let next =
            startable.min_by_key(|(at, waiting)| (waiting.requester.rank, last_start(&waiting.requester.owner), *at));
        next.map(|(at, _)| at)
    }
}

impl Drop for RunningPass {
    fn drop(&mut self) {
        let mut queue = locked(&self.shared.queue);
        if let Some(at) = queue.running.iter().position(|owner| *owner == self.owner) {
            queue.running.swap_remove(at);
        }
        queue.start_waiting(self.shared.limits.threads);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut queue = locked(&self.shared.queue);
        queue.taken -= 1;
        if let Some(account) = queue.accounts.get_mut(&self.requester.owner) {
            account.taken -= 1;
            if account.taken == 0 {
                queue.accounts.remove(&self.requester.owner);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    pub(in crate::captures) fn requester(owner: &str, role: Role) -> Requester {
        let session = Session { role, owner: Some(owner.into()), form_key: None };
        let source = Source { path: PathBuf::new(), len: 0, changed: std::time::UNIX_EPOCH };
        Requester::new(&session, &source)
    }

    /// Starts work that reports its name and then waits for a signal to end.
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

        fn add(&self, name: &'static str, requester: Requester) -> mpsc::Sender<()> {
            let (end, ends) = mpsc::channel();
            let (ticket, begun) = (self.workers.ticket(requester).expect(name), self.begun.clone());
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
    async fn many_requests_of_one_owner_block_no_other_owner() {
        let mut bench = Bench::new(WorkLimits { threads: 2, tickets: 10, reserved: 2, owner: 4 });
        let many = ["1", "2", "3", "4"].map(|name| bench.add(name, requester("crowd", Role::Viewer)));
        assert_eq!(bench.next().await, "1");
        assert!(bench.workers.ticket(requester("crowd", Role::Viewer)).is_none(), "this owner has all of its tickets");
        // The second thread is free for another owner.
        let other = bench.add("other", requester("other", Role::Viewer));
        assert_eq!(bench.next().await, "other");
        // A third owner comes before the waiting passes of the first one.
        let third = bench.add("third", requester("third", Role::Viewer));
        tokio::task::yield_now().await;
        drop(many[0].clone());
        many[0].send(()).unwrap();
        assert_eq!(bench.next().await, "third");
        drop((many, other, third));
    }

    #[tokio::test]
    async fn operators_come_first_and_have_reserved_tickets() {
        let mut bench = Bench::new(WorkLimits { threads: 1, tickets: 5, reserved: 2, owner: 4 });
        let first = bench.add("first", requester("a", Role::Viewer));
        assert_eq!(bench.next().await, "first");
        let second = bench.add("second", requester("b", Role::Viewer));
        let third = bench.add("ahead", Requester::background());
        assert!(bench.workers.ticket(requester("c", Role::Viewer)).is_none());
        let operator = bench.add("operator", requester("d", Role::Operator));
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
        let of =
            |name: &str| Requester::new(&local, &Source { path: name.into(), len: 0, changed: std::time::UNIX_EPOCH });
        let mut bench = Bench::new(WorkLimits { threads: 2, tickets: 10, reserved: 2, owner: 2 });
        let ends = [bench.add("a", of("a")), bench.add("again", of("a"))];
        assert_eq!(bench.next().await, "a");
        assert!(bench.workers.ticket(of("a")).is_none());
        let other = bench.add("b", of("b"));
        assert_eq!(bench.next().await, "b");
        drop((ends, other));
    }
}
