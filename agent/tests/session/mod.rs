//! [`play`] runs a control connection without a socket and without a device. Its input can be any
//! bytes, and its output is lines. The checks of the output apply to any input. The fuzz target
//! `agent` also uses this module.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use weft_agent::Limits;
use weft_agent::protocol::{
    Action, AgentMessage, Event, Failure, LONGEST_LINE, MAX_TRANSFER_OCTETS, MessageContent, Object, Octets, Outcome,
    Request, Success, VERSION, pattern,
};
use weft_agent::serve::{Backend, ServeError, serve};
use weft_agent::soft::SoftDevice;
use weft_peer::memory::MemorySettings;
use weft_peer::service::DrivenConnection;
use weft_peer::{Settings, Transmit};

/// Maximum number of bytes that one control connection can register in these tests.
pub const MEMORY: u64 = 1 << 20;

/// The numbers of backends, of their objects, and of the bytes of these objects.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Backends that were created since the start.
    pub made: usize,
    pub backends: usize,
    pub objects: usize,
    pub octets: u64,
}

/// [`Counts`] of all backends that share this counter.
#[derive(Debug, Default, Clone)]
pub struct Counter(Arc<Mutex<Counts>>);

impl Counter {
    /// Returns the current counts.
    pub fn now(&self) -> Counts {
        *self.counted()
    }

    /// Locks the counts. This also works after a thread has panicked with the lock.
    fn counted(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asserts that no backend and no object is left, and that `made` backends were created.
    pub fn expect_gone(&self, made: usize) {
        let now = self.now();
        assert_eq!(now, Counts { made, backends: 0, objects: 0, octets: 0 }, "something is left");
    }
}

/// An object that is counted while it exists.
struct Counted {
    counter: Counter,
    memory: Vec<u8>,
}

impl Counted {
    fn new(counter: &Counter, memory: Vec<u8>) -> Self {
        let mut counts = counter.counted();
        counts.objects += 1;
        counts.octets += memory.len() as u64;
        Counted { counter: counter.clone(), memory }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counter.counted();
        counts.objects -= 1;
        counts.octets -= self.memory.len() as u64;
    }
}

/// A fake device that has only domains and regions. A region has memory. Each new domain causes an
/// event.
pub struct FakeDevice {
    counter: Counter,
    objects: BTreeMap<Object, Counted>,
    last: Object,
    events: Vec<Event>,
}

impl FakeDevice {
    pub fn new(counter: &Counter) -> Self {
        let mut counts = counter.counted();
        counts.made += 1;
        counts.backends += 1;
        FakeDevice { counter: counter.clone(), objects: BTreeMap::new(), last: 0, events: Vec::new() }
    }

    fn keep(&mut self, memory: Vec<u8>) -> Object {
        self.last += 1;
        self.objects.insert(self.last, Counted::new(&self.counter, memory));
        self.last
    }

    fn part(&mut self, region: Object, offset: u64, length: u64) -> Result<&mut [u8], Failure> {
        let memory = self.objects.get_mut(&region).map(|object| object.memory.as_mut_slice());
        let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
        let begin = usize::try_from(offset).ok();
        memory.zip(begin.zip(end)).and_then(|(memory, (begin, end))| memory.get_mut(begin..end)).ok_or_else(beside)
    }
}

fn beside() -> Failure {
    Failure::of("beside it")
}

impl Drop for FakeDevice {
    fn drop(&mut self) {
        self.counter.counted().backends -= 1;
    }
}

impl Backend for FakeDevice {
    fn perform(&mut self, action: Action) -> Result<Success, Failure> {
        match action {
            Action::Domain => {
                let domain = self.keep(Vec::new());
                self.events.push(Event::Disconnected { connection: domain });
                Ok(Success::Domain { domain })
            }
            Action::Register { octets, .. } => {
                let used: u64 = self.objects.values().map(|object| object.memory.len() as u64).sum();
                let octets = usize::try_from(octets).ok().filter(|octets| *octets as u64 <= MEMORY - used);
                let region = self.keep(vec![0; octets.ok_or_else(|| Failure::of("too much"))?]);
                Ok(Success::Region { region, address: 0, local_key: 1, remote_key: 1 })
            }
            Action::Put { region, offset, octets } => {
                self.part(region, offset, octets.0.len() as u64)?.copy_from_slice(&octets.0);
                Ok(Success::Nothing)
            }
            Action::Fill { region, offset, length, seed } => {
                let part = self.part(region, offset, length)?;
                part.iter_mut().zip(0..).for_each(|(octet, index)| *octet = pattern(seed, index));
                Ok(Success::Nothing)
            }
            Action::Get { region, offset, length } if length <= MAX_TRANSFER_OCTETS as u64 => {
                let octets = self.part(region, offset, length)?.to_vec();
                Ok(Success::Octets { octets: Octets(octets) })
            }
            Action::Destroy { object } => self.objects.remove(&object).map(|_| Success::Nothing).ok_or_else(beside),
            _ => Err(Failure::of("not here")),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// Input from a tester: its bytes, in pieces, and then the end of the stream. A read never blocks.
struct Input<'a, P> {
    octets: &'a [u8],
    piece: P,
    readable: UnixStream,
}

impl<P: FnMut() -> usize> Read for Input<'_, P> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = (self.piece)().max(1).min(self.octets.len()).min(into.len());
        let (now, later) = self.octets.split_at(length);
        into[..length].copy_from_slice(now);
        self.octets = later;
        Ok(length)
    }
}

impl<P> AsFd for Input<'_, P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

/// Runs a control connection in which the tester sends `octets` and disconnects. Each read returns
/// the number of bytes that `piece` returns. Returns the lines that the tester receives.
///
/// Checks that the output follows docs/agent.md. Each line gets an answer with the id of its
/// request. The answers have the order of the lines. Without a valid hello, no backend is created.
/// At the end, no object exists.
///
/// # Panics
///
/// If a check fails.
pub fn play(octets: &[u8], piece: impl FnMut() -> usize, token: Option<&str>) -> Vec<u8> {
    let counter = Counter::default();
    let (hello, output) = play_on(octets, piece, token, || Ok(FakeDevice::new(&counter)));
    counter.expect_gone(usize::from(hello));
    output
}

/// Does the same as [`play`] with the software RNIC. Each connection that the tester opens arrives
/// at a listener of the same tester. Checks that every object can be destroyed at the end.
pub fn play_soft(octets: &[u8], piece: impl FnMut() -> usize, token: Option<&str>) -> Vec<u8> {
    play_on(octets, piece, token, || {
        let limits = Limits { memory: MEMORY, objects: 64 };
        let soft = SoftDevice::with_limits(Settings::default(), limits, MemorySettings::default());
        soft.map(Looped::new).map_err(|why| Failure::of(why.to_string()))
    })
    .1
}

/// The software RNIC with connections to itself, at a fixed time.
struct Looped {
    soft: SoftDevice,
    /// The two ends of each connection: the connecting end, and the listening end.
    wires: Vec<[Box<dyn DrivenConnection>; 2]>,
    /// Connecting ends without a listener. They never get an answer.
    lonely: Vec<Box<dyn DrivenConnection>>,
    last: Object,
    exited: bool,
}

/// Maximum number of outputs that are moved after one request. The RNIC needs far fewer.
const MAX_MOVES: usize = 1 << 16;

impl Looped {
    const NOW: weft_peer::Instant = weft_peer::Instant::ORIGIN;

    fn new(soft: SoftDevice) -> Self {
        Looped { soft, wires: Vec::new(), lonely: Vec::new(), last: 0, exited: false }
    }

    /// Moves the output of each end to the other end, until there is no more output.
    fn drive(&mut self) {
        for _ in 0..MAX_MOVES {
            let mut moved = false;
            for wire in &mut self.wires {
                let [left, right] = wire;
                moved |= carry(left, right) | carry(right, left);
            }
            if !moved {
                // Keep the ended connections, because they exist until a request destroys them.
                return;
            }
        }
        panic!("the ends of {} connections never stop sending", self.wires.len());
    }
}

/// Moves one output to the other end. Returns whether there was an output.
fn carry(from: &mut Box<dyn DrivenConnection>, to: &mut Box<dyn DrivenConnection>) -> bool {
    if from.poll_timeout().is_some_and(|at| at <= Looped::NOW) {
        from.handle_timeout(Looped::NOW);
    }
    match from.poll_transmit(Looped::NOW) {
        Some(Transmit::Octets(octets)) => to.handle_octets(Looped::NOW, &octets),
        Some(Transmit::Fin) => to.handle_fin(Looped::NOW),
        Some(Transmit::Reset) => to.handle_reset(Looped::NOW),
        None => return false,
    }
    true
}

impl Backend for Looped {
    fn perform(&mut self, action: Action) -> Result<Success, Failure> {
        let connects = matches!(action, Action::Connect(_));
        self.exited |= action == Action::Exit;
        let done = self.soft.perform(Self::NOW, action)?;
        if let Success::Domain { domain: object }
        | Success::Listener { listener: object, .. }
        | Success::Region { region: object, .. }
        | Success::Shared { shared: object }
        | Success::Window { window: object, .. }
        | Success::Connection { connection: object } = done
        {
            assert!(object > self.last, "a new object has the number of an earlier object");
            self.last = object;
        }
        if connects && let Some(left) = self.soft.accept_stream(Self::NOW) {
            match self.soft.accept_stream(Self::NOW) {
                Some(right) => self.wires.push([left, right]),
                None => self.lonely.push(left),
            }
        }
        Ok(done)
    }

    fn events(&mut self) -> Vec<Event> {
        self.drive();
        let events: Vec<Event> = std::iter::from_fn(|| self.soft.next_event()).map(|(_, event)| event).collect();
        for event in &events {
            if let Event::Request { connection, .. } = event {
                self.last = self.last.max(*connection);
            }
        }
        events
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Drop for Looped {
    fn drop(&mut self) {
        if self.exited || std::thread::panicking() {
            return;
        }
        // Connections lose their streams first, as when a tester disconnects.
        self.wires.clear();
        self.lonely.clear();
        let mut left: Vec<Object> = (1..=self.last).collect();
        // Windows use regions, and other objects use domains. An object can be destroyed only after
        // the objects that use it. So some objects need several passes.
        for _ in 0..4 {
            left.retain(|object| {
                let destroyed = self.soft.perform(Self::NOW, Action::Destroy { object: *object });
                destroyed.is_err_and(|why| !why.what.contains("has no object"))
            });
        }
        assert!(left.is_empty(), "{left:?} cannot be destroyed");
    }
}

/// Runs a control connection with any backend. Returns whether the hello was valid, and the output.
fn play_on<C: Backend>(
    octets: &[u8],
    piece: impl FnMut() -> usize,
    token: Option<&str>,
    backend: impl FnOnce() -> Result<C, Failure>,
) -> (bool, Vec<u8>) {
    // The other side of this pair is closed, so a read never blocks.
    let (readable, _) = UnixStream::pair().expect("two descriptors");
    let mut sent = Vec::new();
    let input = Input { octets, piece, readable };
    let ended = serve(input, &mut sent, token, Instant::now(), backend);
    let expected = Expected::of(octets, token);
    match (&ended, expected.end) {
        (Ok(()), End::Gone)
        | (Err(ServeError::NoHello(_)), End::Refused)
        | (Err(ServeError::TooLong(_)), End::TooLong) => {}
        _ => panic!("ended by {ended:?}, expected {:?}", expected.end),
    }
    let mut answers = Vec::new();
    let mut last = 0;
    for line in sent.split_inclusive(|octet| *octet == b'\n') {
        assert!(line.len() <= LONGEST_LINE && line.ends_with(b"\n"), "a line of {} bytes", line.len());
        let message: AgentMessage = serde_json::from_slice(line).expect("the output is valid JSON");
        assert!(message.at >= last, "time goes back");
        last = message.at;
        match message.what {
            MessageContent::Answer { id, outcome } => {
                assert!(id.is_some() || matches!(outcome, Outcome::Failed(_)), "{outcome:?} to nothing");
                answers.push(id);
            }
            MessageContent::Event(_) => assert!(!answers.is_empty(), "an event before the hello"),
        }
    }
    assert_eq!(answers, expected.answers, "ids of the answers");
    (expected.hello, sent)
}

#[derive(Debug, Clone, Copy)]
enum End {
    Gone,
    Refused,
    TooLong,
}

/// The behaviour that docs/agent.md requires for an input.
struct Expected {
    answers: Vec<Option<u64>>,
    hello: bool,
    end: End,
}

impl Expected {
    fn of(octets: &[u8], token: Option<&str>) -> Self {
        let mut lines = octets.split(|octet| *octet == b'\n');
        // Bytes after the last line feed are not a line.
        let rest = lines.next_back().unwrap_or(&[]);
        let first = lines.next();
        if first.unwrap_or(rest).len() > 4096 {
            return Expected { answers: vec![None], hello: false, end: End::Refused };
        }
        let Some(first) = first else {
            return Expected { answers: Vec::new(), hello: false, end: End::Gone };
        };
        let first: Option<Request> = serde_json::from_slice(first).ok();
        let hello = first.as_ref().is_some_and(|request| match &request.action {
            Action::Hello { version, token: received } => {
                *version == VERSION && token.is_none_or(|token| received.as_deref() == Some(token))
            }
            _ => false,
        });
        let mut answers = vec![first.map(|request| request.id)];
        if !hello {
            return Expected { answers, hello, end: End::Refused };
        }
        for line in lines.by_ref().chain([rest]) {
            if line.len() >= LONGEST_LINE {
                answers.push(None);
                return Expected { answers, hello, end: End::TooLong };
            }
            answers.push(serde_json::from_slice(line).ok().map(|request: Request| request.id));
        }
        // The bytes after the last line feed get no answer.
        answers.pop();
        Expected { answers, hello, end: End::Gone }
    }
}
