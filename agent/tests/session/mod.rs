//! A control connection without a socket and without a device. Octets go in, lines come out, and
//! the checks hold whatever the octets are. The fuzz target `agent` also uses it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use weft_agent::Limits;
use weft_agent::protocol::{
    Action, AgentMessage, Done, Event, Failure, LONGEST_LINE, MOST_OCTETS, Object, Octets, Outcome, Request, VERSION,
    What, pattern,
};
use weft_agent::serve::{Carrier, Ended, serve};
use weft_agent::soft::Soft;
use weft_peer::memory::MemorySettings;
use weft_peer::service::Served;
use weft_peer::{Settings, Transmit};

/// Octets that one control connection may register here.
pub const MEMORY: u64 = 1 << 20;

/// The number of carriers, their objects and the octets of these.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Made since the start.
    pub made: usize,
    pub carriers: usize,
    pub objects: usize,
    pub octets: u64,
}

/// [`Counts`] of all carriers that share it.
#[derive(Debug, Default, Clone)]
pub struct Counter(Arc<Mutex<Counts>>);

impl Counter {
    /// Now.
    pub fn now(&self) -> Counts {
        *self.counted()
    }

    /// Also works after a thread that counted has panicked.
    fn counted(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asserts that nothing is left, and that `made` carriers were made.
    pub fn expect_gone(&self, made: usize) {
        let now = self.now();
        assert_eq!(now, Counts { made, carriers: 0, objects: 0, octets: 0 }, "something is left");
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

/// A fake device: domains, and regions with their memory. Each new domain comes with an event.
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
        counts.carriers += 1;
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
        self.counter.counted().carriers -= 1;
    }
}

impl Carrier for FakeDevice {
    fn perform(&mut self, action: Action) -> Result<Done, Failure> {
        match action {
            Action::Domain => {
                let domain = self.keep(Vec::new());
                self.events.push(Event::Disconnected { connection: domain });
                Ok(Done::Domain { domain })
            }
            Action::Register { octets, .. } => {
                let used: u64 = self.objects.values().map(|object| object.memory.len() as u64).sum();
                let octets = usize::try_from(octets).ok().filter(|octets| *octets as u64 <= MEMORY - used);
                let region = self.keep(vec![0; octets.ok_or_else(|| Failure::of("too much"))?]);
                Ok(Done::Region { region, address: 0, local_key: 1, remote_key: 1 })
            }
            Action::Put { region, offset, octets } => {
                self.part(region, offset, octets.0.len() as u64)?.copy_from_slice(&octets.0);
                Ok(Done::Nothing)
            }
            Action::Fill { region, offset, length, seed } => {
                let part = self.part(region, offset, length)?;
                part.iter_mut().zip(0..).for_each(|(octet, index)| *octet = pattern(seed, index));
                Ok(Done::Nothing)
            }
            Action::Get { region, offset, length } if length <= MOST_OCTETS as u64 => {
                let octets = self.part(region, offset, length)?.to_vec();
                Ok(Done::Octets { octets: Octets(octets) })
            }
            Action::Destroy { object } => self.objects.remove(&object).map(|_| Done::Nothing).ok_or_else(beside),
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

/// The octets that a tester sends, as they arrive, and then the end. It can be read at any time.
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

/// Plays a control connection in which the tester sends `octets` and disconnects. Each read returns
/// as many octets as `piece` gives. The output must follow docs/agent.md: an answer to each line
/// with its number, in order; nothing made without a valid hello; no object left. Returns the lines
/// that the tester receives.
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

/// The same with the software RNIC. Each connection returns as a request to its own listener. At
/// the end, every object can be destroyed. Returns the output.
pub fn play_soft(octets: &[u8], piece: impl FnMut() -> usize, token: Option<&str>) -> Vec<u8> {
    play_on(octets, piece, token, || {
        let limits = Limits { memory: MEMORY, objects: 64 };
        let soft = Soft::limited(Settings::default(), limits, MemorySettings::default());
        soft.map(Looped::new).map_err(|why| Failure::of(why.to_string()))
    })
    .1
}

/// The software RNIC with connections to itself, at a fixed time.
struct Looped {
    soft: Soft,
    /// The connecting end, and the listening end.
    wires: Vec<[Box<dyn Served>; 2]>,
    /// Connecting ends without a listener: nothing ever answers.
    lonely: Vec<Box<dyn Served>>,
    last: Object,
    exited: bool,
}

/// Octets and ends of streams that pass over all wires after one request. The RNIC sends far less
/// for one.
const MOST_MOVED: usize = 1 << 16;

impl Looped {
    const NOW: weft_peer::Instant = weft_peer::Instant::ORIGIN;

    fn new(soft: Soft) -> Self {
        Looped { soft, wires: Vec::new(), lonely: Vec::new(), last: 0, exited: false }
    }

    /// Moves the output of all ends to the other ends, until there is none.
    fn drive(&mut self) {
        for _ in 0..MOST_MOVED {
            let mut moved = false;
            for wire in &mut self.wires {
                let [left, right] = wire;
                moved |= carry(left, right) | carry(right, left);
            }
            if !moved {
                // Finished objects exist until they are destroyed.
                return;
            }
        }
        panic!("the ends of {} connections never stop sending", self.wires.len());
    }
}

/// Moves one output to the other end; was there any?
fn carry(from: &mut Box<dyn Served>, to: &mut Box<dyn Served>) -> bool {
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

impl Carrier for Looped {
    fn perform(&mut self, action: Action) -> Result<Done, Failure> {
        let connects = matches!(action, Action::Connect(_));
        self.exited |= action == Action::Exit;
        let done = self.soft.perform(Self::NOW, action)?;
        if let Done::Domain { domain: object }
        | Done::Listener { listener: object, .. }
        | Done::Region { region: object, .. }
        | Done::Shared { shared: object }
        | Done::Window { window: object, .. }
        | Done::Connection { connection: object } = done
        {
            assert!(object > self.last, "a number comes again");
            self.last = object;
        }
        if connects && let Some(left) = self.soft.arrive(Self::NOW) {
            match self.soft.arrive(Self::NOW) {
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
        // Windows use regions, and all use domains: one pass for each kind is enough.
        for _ in 0..4 {
            left.retain(|object| {
                let destroyed = self.soft.perform(Self::NOW, Action::Destroy { object: *object });
                destroyed.is_err_and(|why| !why.what.contains("is no object"))
            });
        }
        assert!(left.is_empty(), "{left:?} cannot be destroyed");
    }
}

/// The same with any carrier. Returns whether the hello was valid, and the output.
fn play_on<C: Carrier>(
    octets: &[u8],
    piece: impl FnMut() -> usize,
    token: Option<&str>,
    carrier: impl FnOnce() -> Result<C, Failure>,
) -> (bool, Vec<u8>) {
    // Its other end is closed, so the end can be read at any time.
    let (readable, _) = UnixStream::pair().expect("two descriptors");
    let mut sent = Vec::new();
    let input = Input { octets, piece, readable };
    let ended = serve(input, &mut sent, token, Instant::now(), carrier);
    let expected = Expected::of(octets, token);
    match (&ended, expected.end) {
        (Ok(()), End::Gone) | (Err(Ended::NoHello(_)), End::Refused) | (Err(Ended::TooLong(_)), End::TooLong) => {}
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
            What::Answer { id, outcome } => {
                assert!(id.is_some() || matches!(outcome, Outcome::Failed(_)), "{outcome:?} to nothing");
                answers.push(id);
            }
            What::Event(_) => assert!(!answers.is_empty(), "an event before the hello"),
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

/// The behaviour that docs/agent.md requires for these octets.
struct Expected {
    answers: Vec<Option<u64>>,
    hello: bool,
    end: End,
}

impl Expected {
    fn of(octets: &[u8], token: Option<&str>) -> Self {
        let mut lines = octets.split(|octet| *octet == b'\n');
        // Octets after the last line feed are not a line.
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
        // The rest is not a line.
        answers.pop();
        Expected { answers, hello, end: End::Gone }
    }
}
