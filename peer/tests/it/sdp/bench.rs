//! A [`Bench`] is one SDP machine and a peer whose messages the test builds. It uses the bare
//! profile, in which FPDUs follow the Hello without MPA start-up frames.

use weft_peer::Instant;
use weft_peer::sdp::{Connection, Event, Policy, Profile, ReceiveId, SendId, Settings};

use crate::sdp::host::{Host, Item};
use crate::sdp::wire::{HELLO, Hello, message};

/// A message that the machine sent, parsed as the figures of draft-pinkerton-iwarp-sdp-01 define
/// it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentMessage {
    pub(crate) bufs: u16,
    pub(crate) flags: u8,
    pub(crate) mid: u8,
    pub(crate) mseq: u32,
    pub(crate) mseq_ack: u32,
    /// The octets after the BSDH, which is the header of every SDP message.
    pub(crate) rest: Vec<u8>,
    pub(crate) solicited: bool,
    pub(crate) invalidate: Option<u32>,
}

impl SentMessage {
    /// The 32-bit word at offset `at` after the BSDH.
    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.rest[at..at + 4].try_into().unwrap())
    }
}

/// One machine and its synthetic peer.
pub(crate) struct Bench {
    pub(crate) host: Host,
    pub(crate) now: Instant,
    mseq: u32,
    received: u32,
    /// Bufs in the peer's messages.
    pub(crate) bufs: u16,
}

impl Bench {
    /// Creates a Connecting Peer, whose peer has `bufs` Private Buffers of `size` octets.
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
        Bench { host, now, mseq: 0, received: 0, bufs: ack.bufs }
    }

    /// Creates an Accepting Peer, whose peer sends `hello`.
    pub(crate) fn accepting(settings: Settings, hello: Hello) -> Self {
        let now = Instant::ORIGIN;
        let settings = Settings { profile: Profile::Bare, ..settings };
        let mut host = Host::new(Connection::accept(now, settings));
        host.arrive(now, Item::Streaming(hello.octets()));
        assert!(host.machine.is_open());
        host.outgoing.clear();
        host.events.clear();
        Bench { host, now, mseq: 0, received: 0, bufs: hello.bufs }
    }

    /// Delivers the peer's next message.
    pub(crate) fn deliver(&mut self, mid: u8, rest: &[u8]) {
        self.deliver_with(0, mid, self.received, rest, None);
    }

    pub(crate) fn deliver_with(&mut self, flags: u8, mid: u8, mseq_ack: u32, rest: &[u8], invalidate: Option<u32>) {
        self.mseq += 1;
        let octets = message(self.bufs, flags, mid, self.mseq, mseq_ack, rest);
        self.host.arrive(self.now, Item::Message { octets, solicited: false, invalidate });
    }

    /// Restarts MSeq on both sides.
    pub(crate) fn restarted(&mut self) {
        (self.mseq, self.received) = (0, 0);
    }

    /// The items that the machine sent since the last call.
    pub(crate) fn all(&mut self) -> Vec<Item> {
        self.host.run(self.now);
        while !self.host.completions.is_empty() {
            self.host.complete(self.now);
        }
        self.host.outgoing.drain(..).collect()
    }

    /// The messages that the machine sent since the last call.
    pub(crate) fn messages(&mut self) -> Vec<SentMessage> {
        let messages: Vec<SentMessage> = self.all().into_iter().filter_map(parse_message).collect();
        self.received = messages.last().map_or(self.received, |message| message.mseq);
        messages
    }

    /// The MIDs of [`messages`](Self::messages).
    pub(crate) fn mids(&mut self) -> Vec<u8> {
        self.messages().iter().map(|message| message.mid).collect()
    }

    /// Lets the user send `len` octets with the values 1, 2, 3 and so on.
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

    pub(crate) fn receive_so(&mut self, id: u64, len: u64, wait_for_all: bool) {
        self.host.receives.insert(ReceiveId(id), vec![0; usize::try_from(len).unwrap()]);
        self.host.machine.receive(ReceiveId(id), len, wait_for_all).unwrap();
        self.host.run(self.now);
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.host.run(self.now);
        std::mem::take(&mut self.host.events)
    }

    /// Lets time pass until the machine's next deadline.
    pub(crate) fn wait(&mut self) {
        self.now = self.host.machine.poll_timeout().unwrap();
        self.host.machine.handle_timeout(self.now);
    }

    /// Returns whether the machine has aborted the connection.
    pub(crate) fn is_aborted(&mut self) -> bool {
        self.host.run(self.now);
        self.host.machine.is_over() && self.host.outgoing.back() == Some(&Item::Reset)
    }
}

/// Parses a message; returns `None` for any other item.
pub(crate) fn parse_message(item: Item) -> Option<SentMessage> {
    let Item::Message { octets, solicited, invalidate } = item else { return None };
    let word = |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().unwrap());
    assert_eq!(word(4) as usize, octets.len(), "Len");
    Some(SentMessage {
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
