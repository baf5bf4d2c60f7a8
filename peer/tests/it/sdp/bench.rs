//! One machine against messages made by hand, in the bare profile.

use weft_peer::Instant;
use weft_peer::sdp::{Connection, Event, Policy, Profile, ReceiveId, SendId, Settings};

use crate::sdp::host::{Host, Item};
use crate::sdp::wire::{HELLO, Hello, message};

/// A message that the machine sent, taken apart by the figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) bufs: u16,
    pub(crate) flags: u8,
    pub(crate) mid: u8,
    pub(crate) mseq: u32,
    pub(crate) mseq_ack: u32,
    /// Behind the BSDH.
    pub(crate) rest: Vec<u8>,
    pub(crate) solicited: bool,
    pub(crate) invalidate: Option<u32>,
}

impl Said {
    /// The 32-bit word `at` octets behind the BSDH.
    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.rest[at..at + 4].try_into().unwrap())
    }
}

/// The machine, and what its peer has done.
pub(crate) struct Bench {
    pub(crate) host: Host,
    pub(crate) now: Instant,
    mseq: u32,
    heard: u32,
    /// Bufs of the peer's messages.
    pub(crate) bufs: u16,
}

impl Bench {
    /// The machine is the Connecting Peer; its peer has `bufs` Private Buffers of `size` octets.
    pub(crate) fn new(policy: Policy, bufs: u16, size: u32) -> Self {
        Bench::with(Settings { recv_size: 64, policy, ..Settings::default() }, Hello { bufs, local: size, ..HELLO })
    }

    pub(crate) fn with(settings: Settings, ack: Hello) -> Self {
        let now = Instant::ORIGIN;
        let settings = Settings { profile: Profile::Bare, ..settings };
        let mut host = Host::new(Connection::connect(now, settings));
        host.run(now);
        host.outgoing.clear();
        host.arrive(now, Item::Message { octets: ack.ack(), solicited: true, invalidate: None });
        assert!(host.machine.is_open());
        host.events.clear();
        Bench { host, now, mseq: 0, heard: 0, bufs: ack.bufs }
    }

    /// The same as Accepting Peer.
    pub(crate) fn accepting(settings: Settings, hello: Hello) -> Self {
        let now = Instant::ORIGIN;
        let settings = Settings { profile: Profile::Bare, ..settings };
        let mut host = Host::new(Connection::accept(now, settings));
        host.arrive(now, Item::Streaming(hello.octets()));
        assert!(host.machine.is_open());
        host.outgoing.clear();
        host.events.clear();
        Bench { host, now, mseq: 0, heard: 0, bufs: hello.bufs }
    }

    /// The peer's next message.
    pub(crate) fn hear(&mut self, mid: u8, rest: &[u8]) {
        self.hear_so(0, mid, self.heard, rest, None);
    }

    pub(crate) fn hear_so(&mut self, flags: u8, mid: u8, mseq_ack: u32, rest: &[u8], invalidate: Option<u32>) {
        self.mseq += 1;
        let octets = message(self.bufs, flags, mid, self.mseq, mseq_ack, rest);
        self.host.arrive(self.now, Item::Message { octets, solicited: false, invalidate });
    }

    /// MSeq begins anew, on both sides.
    pub(crate) fn restarted(&mut self) {
        (self.mseq, self.heard) = (0, 0);
    }

    /// What the machine sent since the last time.
    pub(crate) fn all(&mut self) -> Vec<Item> {
        self.host.run(self.now);
        while !self.host.completions.is_empty() {
            self.host.complete(self.now);
        }
        self.host.outgoing.drain(..).collect()
    }

    /// The messages among it.
    pub(crate) fn said(&mut self) -> Vec<Said> {
        let said: Vec<Said> = self.all().into_iter().filter_map(said).collect();
        self.heard = said.last().map_or(self.heard, |said| said.mseq);
        said
    }

    /// The MIDs of [`said`](Self::said).
    pub(crate) fn mids(&mut self) -> Vec<u8> {
        self.said().iter().map(|said| said.mid).collect()
    }

    /// The user sends that many octets: 1, 2, 3, ...
    pub(crate) fn send(&mut self, id: u64, len: u64) {
        self.send_so(id, len, false);
    }

    pub(crate) fn send_so(&mut self, id: u64, len: u64, urgent: bool) {
        self.host.sends.insert(SendId(id), (1..=len).map(|octet| octet as u8).collect());
        self.host.machine.send(SendId(id), len, urgent).unwrap();
    }

    pub(crate) fn receive(&mut self, id: u64, len: u64) {
        self.receive_so(id, len, false);
    }

    pub(crate) fn receive_so(&mut self, id: u64, len: u64, whole: bool) {
        self.host.receives.insert(ReceiveId(id), vec![0; usize::try_from(len).unwrap()]);
        self.host.machine.receive(ReceiveId(id), len, whole).unwrap();
        self.host.run(self.now);
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.host.run(self.now);
        std::mem::take(&mut self.host.events)
    }

    /// Time passes until the machine's next deadline.
    pub(crate) fn wait(&mut self) {
        self.now = self.host.machine.poll_timeout().unwrap();
        self.host.machine.handle_timeout(self.now);
    }

    /// The machine saw something that it cannot live with.
    pub(crate) fn is_aborted(&mut self) -> bool {
        self.host.run(self.now);
        self.host.machine.is_over() && self.host.outgoing.back() == Some(&Item::Reset)
    }
}

/// A message, taken apart; `None` for anything else.
pub(crate) fn said(item: Item) -> Option<Said> {
    let Item::Message { octets, solicited, invalidate } = item else { return None };
    let word = |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().unwrap());
    assert_eq!(word(4) as usize, octets.len(), "Len");
    Some(Said {
        bufs: u16::from_be_bytes([octets[0], octets[1]]),
        flags: octets[2],
        mid: octets[3],
        mseq: word(8),
        mseq_ack: word(12),
        rest: octets[16..].to_vec(),
        solicited,
        invalidate,
    })
}
