//! A [`Host`] is an SDP machine with its environment: the user's octets, Private Buffers,
//! registered memory and a Send Queue. Each part checks its own rules. If the machine requests an
//! operation that an RNIC would reject, the test fails.

use std::collections::{BTreeMap, HashMap, VecDeque};

use weft_peer::Instant;
use weft_peer::sdp::{
    Arrival, Connection, Event, Exposed, OpId, Output, Piece, PrivateBuffer, ReceiveId, Region, SendId, Start,
};

/// An item on the link, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Streaming(Vec<u8>),
    Message { octets: Vec<u8>, solicited: bool, invalidate: Option<u32> },
    Write { stag: u32, va: u64, octets: Vec<u8> },
    ReadRequest { op: OpId, stag: u32, va: u64, len: u32 },
    ReadResponse { op: OpId, octets: Vec<u8> },
    Fin,
    Reset,
}

/// Memory that the peer can access.
#[derive(Debug, Clone, Copy)]
struct Registered {
    exposed: Exposed,
    va: u64,
}

/// One side.
pub(crate) struct Host {
    pub(crate) machine: Connection,
    pub(crate) sends: HashMap<SendId, Vec<u8>>,
    pub(crate) receives: HashMap<ReceiveId, Vec<u8>>,
    /// Posted Private Buffers, each with its identifier and its size.
    posted: VecDeque<(PrivateBuffer, u32)>,
    filled: HashMap<PrivateBuffer, Vec<u8>>,
    regions: BTreeMap<u32, Registered>,
    next_stag: u32,
    /// The Sends and Writes whose completion is not reported yet.
    pub(crate) completions: VecDeque<OpId>,
    reads: HashMap<OpId, (ReceiveId, u64)>,
    /// Items that wait for the link.
    pub(crate) outgoing: VecDeque<Item>,
    pub(crate) events: Vec<Event>,
    pub(crate) start: Option<Start>,
    /// Octets that Bcopy copied.
    pub(crate) copied: u64,
    /// Octets that this side moved with RDMA Reads (`read`) and with RDMA Writes (`written`).
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// All registrations of memory fail.
    pub(crate) no_memory: bool,
    /// The TCP connection of this side has ended.
    pub(crate) gone: bool,
}

impl Host {
    pub(crate) fn new(machine: Connection) -> Self {
        Host {
            machine,
            sends: HashMap::new(),
            receives: HashMap::new(),
            posted: VecDeque::new(),
            filled: HashMap::new(),
            regions: BTreeMap::new(),
            next_stag: 0x100,
            completions: VecDeque::new(),
            reads: HashMap::new(),
            outgoing: VecDeque::new(),
            events: Vec::new(),
            start: None,
            copied: 0,
            read: 0,
            written: 0,
            no_memory: false,
            gone: false,
        }
    }

    /// Memory that is registered for the peer.
    pub(crate) fn registered(&self) -> usize {
        self.regions.len()
    }

    /// Returns whether the peer can still access the memory of this STag.
    pub(crate) fn exposes(&self, stag: u32) -> bool {
        self.regions.contains_key(&stag)
    }

    /// Number of posted Private Buffers.
    pub(crate) fn posted(&self) -> usize {
        self.posted.len()
    }

    /// Performs all outputs of the machine.
    pub(crate) fn run(&mut self, now: Instant) {
        loop {
            let (regions, next, refuses) = (&mut self.regions, &mut self.next_stag, self.no_memory);
            let mut register = |exposed| {
                if refuses {
                    return None;
                }
                *next += 0x101;
                // The address is not aligned.
                let (stag, va) = (*next, u64::from(*next) << 20 | 3);
                regions.insert(stag, Registered { exposed, va });
                Some(Region { stag, va })
            };
            let Some(output) = self.machine.poll(now, &mut register) else { return };
            self.act(output);
        }
    }

    fn octets(&self, piece: Piece) -> Vec<u8> {
        let from = usize::try_from(piece.from).unwrap();
        self.sends[&piece.send][from..from + piece.len as usize].to_vec()
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Receive { buffer, octets } => {
                assert!(!self.gone, "a buffer is posted on a connection that is over");
                assert!(self.posted.iter().all(|(posted, _)| *posted != buffer), "{buffer:?} is posted already");
                self.filled.remove(&buffer);
                self.posted.push_back((buffer, octets));
            }
            Output::Release(buffer) => _ = self.filled.remove(&buffer),
            Output::Streaming(octets) => {
                assert!(self.start.is_none(), "streaming octets in iWARP");
                self.outgoing.push_back(Item::Streaming(octets));
            }
            Output::Start(start) => {
                if !start.last.is_empty() {
                    self.outgoing.push_back(Item::Streaming(start.last.clone()));
                }
                self.start = Some(*start);
            }
            Output::Send { op, mut head, payload, solicited, invalidate } => {
                assert!(self.start.is_some(), "a message before iWARP");
                let payload = payload.map(|piece| self.octets(piece));
                head.extend(payload.into_iter().flatten());
                self.outgoing.push_back(Item::Message { octets: head, solicited, invalidate });
                self.completions.extend(op);
            }
            Output::Read { op, remote, receive, at, len } => {
                let room = self.receives[&receive].len() as u64;
                assert!(at + u64::from(len) <= room, "a read beyond the receive");
                self.read += u64::from(len);
                self.reads.insert(op, (receive, at));
                self.outgoing.push_back(Item::ReadRequest { op, stag: remote.stag, va: remote.tagged_offset, len });
            }
            Output::Write { op, data, remote } => {
                let octets = self.octets(data);
                self.written += octets.len() as u64;
                self.outgoing.push_back(Item::Write { stag: remote.stag, va: remote.tagged_offset, octets });
                self.completions.push_back(op);
            }
            Output::Place { buffer, from, len, receive, at } => {
                let octets = &self.filled[&buffer][from as usize..(from + len) as usize];
                let at = usize::try_from(at).unwrap();
                self.receives.get_mut(&receive).unwrap()[at..at + len as usize].copy_from_slice(octets);
                self.copied += u64::from(len);
            }
            Output::Withdraw { stag } => {
                assert!(self.regions.remove(&stag).is_some(), "STag {stag:#x} was already withdrawn");
            }
            Output::Event(event) => {
                if let Event::Received { receive, .. } = event {
                    let reads = |(read, _): &(ReceiveId, u64)| *read == receive;
                    assert!(self.gone || !self.reads.values().any(reads), "a Read may still fill {receive:?}");
                }
                if let Event::Sent { send, .. } = event {
                    let exposed =
                        |region: &Registered| matches!(region.exposed, Exposed::Source(piece) if piece.send == send);
                    assert!(!self.regions.values().any(exposed), "{send:?} ended and is still advertised");
                }
                self.events.push(event);
            }
            Output::Disconnect { abortive } => {
                self.outgoing.push_back(if abortive { Item::Reset } else { Item::Fin });
                self.gone = true;
                self.posted.clear();
            }
        }
    }

    /// Finds the memory that a request of the peer identifies. Returns the registered send or
    /// receive, and the offset in it.
    fn reach(&self, stag: u32, va: u64, len: usize) -> (Exposed, usize) {
        let region = self.regions.get(&stag).unwrap_or_else(|| panic!("STag {stag:#x} is not registered"));
        let offset = usize::try_from(va - region.va).unwrap();
        let room = match region.exposed {
            Exposed::Source(piece) => piece.len as usize,
            Exposed::Sink { len, .. } => len as usize,
        };
        assert!(offset + len <= room, "beyond the advertised buffer");
        (region.exposed, offset)
    }

    /// Processes an item that arrives from the link.
    pub(crate) fn arrive(&mut self, now: Instant, item: Item) {
        if self.gone {
            return;
        }
        match item {
            Item::Streaming(octets) => {
                assert!(self.start.is_none(), "streaming octets arrive in iWARP");
                self.machine.handle_streaming(now, &octets);
            }
            Item::Message { octets, invalidate, .. } => {
                if self.start.is_none() {
                    // In the bare profile, the first FPDU ends streaming mode.
                    self.machine.handle_streaming(now, &[0, 46]);
                    self.run(now);
                }
                let (buffer, size) = self.posted.pop_front().expect("a message without a Private Buffer for it");
                assert!(octets.len() <= size as usize, "a message of {} bytes for {size}", octets.len());
                if let Some(stag) = invalidate {
                    assert!(self.regions.contains_key(&stag), "STag {stag:#x} to be invalidated is not registered");
                }
                self.filled.insert(buffer, octets.clone());
                self.machine.handle_message(now, buffer, &octets, Arrival { invalidated: invalidate });
            }
            Item::Write { stag, va, octets } => {
                let (Exposed::Sink { receive, .. }, at) = self.reach(stag, va, octets.len()) else {
                    panic!("a write to octets that are sent");
                };
                self.receives.get_mut(&receive).unwrap()[at..at + octets.len()].copy_from_slice(&octets);
            }
            Item::ReadRequest { op, stag, va, len } => {
                let (Exposed::Source(piece), at) = self.reach(stag, va, len as usize) else {
                    panic!("a read of octets that are received");
                };
                let octets = self.octets(Piece { from: piece.from + at as u64, len, ..piece });
                self.outgoing.push_back(Item::ReadResponse { op, octets });
            }
            Item::ReadResponse { op, octets } => {
                let (receive, at) = self.reads.remove(&op).unwrap();
                let at = usize::try_from(at).unwrap();
                self.receives.get_mut(&receive).unwrap()[at..at + octets.len()].copy_from_slice(&octets);
                self.machine.handle_completed(now, op, true);
            }
            Item::Fin | Item::Reset => {
                self.gone = true;
                self.posted.clear();
                self.machine.handle_disconnected(now);
            }
        }
        self.run(now);
    }

    /// Moves to a new TCP connection. Only the contents of filled Private Buffers survive from the
    /// old connection.
    pub(crate) fn reconnect(&mut self, now: Instant) {
        assert!(self.gone && self.outgoing.is_empty() && self.regions.is_empty(), "something is left");
        (self.gone, self.start) = (false, None);
        self.completions.clear();
        self.reads.clear();
        self.machine.reconnected(now);
        self.run(now);
    }

    /// Reports the oldest completion of the RNIC to the machine.
    pub(crate) fn complete(&mut self, now: Instant) {
        if let Some(op) = self.completions.pop_front() {
            self.machine.handle_completed(now, op, true);
            self.run(now);
        }
    }
}
