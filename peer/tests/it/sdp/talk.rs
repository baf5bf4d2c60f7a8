//! Records a conversation of two SDP machines in every Mode. The conversation contains every
//! message of draft-pinkerton-iwarp-sdp-01 except the messages of section 13.

use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Half, Policy, Profile, ReceiveId, SendId, Settings, SrcAvailAnswer};

use crate::sdp::bench::{SentMessage, parse_message};
use crate::sdp::host::Item;
use crate::sdp::peers::Peers;

/// Number of octets of each Private Buffer.
pub(crate) const SIZE: u32 = 64;
/// Number of Private Buffers of each side.
pub(crate) const BUFS: u16 = 9;

/// The items on the link, each with the side that sent it. Side 0 is the Connecting Peer.
pub(crate) struct Talk {
    pub(crate) items: Vec<(usize, Item)>,
    next: u64,
}

impl Talk {
    /// Runs the conversation. Side 0 prefers Pipelined Mode, and side 1 has no preference.
    pub(crate) fn held() -> Self {
        let policy = |wants_pipelined| Policy { wants_pipelined, ..crate::sdp::POLICY };
        let settings = |policy| Settings {
            profile: Profile::Bare,
            bufs: BUFS,
            recv_size: SIZE,
            des_rem_rcv_sz: SIZE,
            max_adverts: 7,
            ird: 5,
            ord: 3,
            policy,
            ..Settings::default()
        };
        let mut peers = Peers::new(settings(policy(true)), settings(policy(false)));
        let hello = (0, Item::Streaming(peers.sent[0][0].clone()));
        peers.log = Some(vec![hello]);
        peers.settle();
        let mut talk = Talk { items: Vec::new(), next: 0 };
        talk.combined(&mut peers);
        for side in 0..2 {
            peers.hosts[side].machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
        }
        peers.settle();
        talk.pipelined(&mut peers);
        for mode in [Mode::Combined, Mode::Buffered] {
            peers.hosts[0].machine.set_mode(Half::Out, mode).unwrap();
            peers.settle();
            talk.send(&mut peers, 1, 5, false);
            talk.receive(&mut peers, 0, 50);
            peers.settle();
        }
        assert_eq!(peers.hosts[0].machine.mode(Half::Out), Mode::Buffered);
        talk.send(&mut peers, 0, 300, false);
        for _ in 0..7 {
            talk.receive(&mut peers, 1, 300);
            peers.settle();
        }
        peers.hosts[1].machine.set_mode(Half::In, Mode::Combined).unwrap();
        peers.settle();
        for size in [80, 40] {
            peers.hosts[0].machine.resize(size);
            peers.settle();
            // A larger size is acknowledged after the old buffers are used up.
            for _ in 0..BUFS {
                talk.send(&mut peers, 0, 1, false);
                talk.receive(&mut peers, 1, 1);
                peers.settle();
            }
        }
        peers.hosts[0].machine.shut_down();
        peers.settle();
        let now = peers.now;
        peers.hosts[0].machine.abort(now);
        peers.settle();
        talk.items = peers.log.take().unwrap();
        talk
    }

    fn combined(&mut self, peers: &mut Peers) {
        for side in 0..2 {
            self.send(peers, side, 5, false);
            self.send(peers, side, 40, true);
            self.receive(peers, 1 - side, 100);
            self.receive(peers, 1 - side, 100);
            peers.settle();
            for answer in [SrcAvailAnswer::Read, SrcAvailAnswer::SendSm] {
                peers.hosts[1 - side].machine.policy_mut().answer = answer;
                self.send(peers, side, 150, false);
                peers.settle();
                self.receive(peers, 1 - side, 200);
                peers.settle();
            }
            peers.hosts[1 - side].machine.policy_mut().answer = SrcAvailAnswer::Read;
        }
    }

    fn pipelined(&mut self, peers: &mut Peers) {
        for side in 0..2 {
            // Use Read Zcopy for two sends at a time.
            self.send(peers, side, 150, false);
            self.send(peers, side, 160, false);
            peers.settle();
            for len in [150, 160] {
                self.receive(peers, 1 - side, len);
                peers.settle();
            }
            self.send(peers, side, 170, false);
            peers.settle();
            peers.hosts[side].machine.cancel_sends();
            peers.settle();
            // Use Write Zcopy, and a Transaction.
            self.receive(peers, 1 - side, 100);
            self.receive(peers, 1 - side, 101);
            peers.settle();
            self.send(peers, side, 150, false);
            self.send(peers, side, 151, false);
            peers.settle();
            self.receive(peers, 1 - side, 400);
            peers.settle();
            peers.hosts[1 - side].machine.cancel_receives();
            peers.settle();
            self.send(peers, side, 20, false);
            self.receive(peers, side, 200);
            self.receive(peers, 1 - side, 30);
            peers.settle();
            self.send(peers, 1 - side, 150, false);
            peers.settle();
            self.receive(peers, 1 - side, 300);
            self.receive(peers, side, 300);
            peers.settle();
            for side in 0..2 {
                peers.hosts[side].machine.cancel_receives();
            }
            peers.settle();
        }
    }

    fn send(&mut self, peers: &mut Peers, side: usize, len: u64, urgent: bool) {
        self.next += 1;
        peers.hosts[side].sends.insert(SendId(self.next), (1..=len).map(|octet| octet as u8).collect());
        peers.hosts[side].machine.send(SendId(self.next), len, urgent).unwrap();
    }

    fn receive(&mut self, peers: &mut Peers, side: usize, len: u64) {
        self.next += 1;
        peers.hosts[side].receives.insert(ReceiveId(self.next), vec![0; usize::try_from(len).unwrap()]);
        peers.hosts[side].machine.receive(ReceiveId(self.next), len, false).unwrap();
    }

    /// The Hello.
    pub(crate) fn hello(&self) -> &[u8] {
        let Some((0, Item::Streaming(hello))) = self.items.first() else { panic!("no Hello") };
        hello
    }

    /// All messages after the Hello, each with the side that sent it.
    pub(crate) fn messages(&self) -> Vec<(usize, SentMessage)> {
        self.items.iter().filter_map(|(side, item)| Some((*side, parse_message(item.clone())?))).collect()
    }

    /// Returns the messages with this MID. Panics if there are none.
    pub(crate) fn of(&self, mid: u8) -> Vec<SentMessage> {
        let messages: Vec<SentMessage> =
            self.messages().into_iter().filter(|(_, message)| message.mid == mid).map(|(_, message)| message).collect();
        assert!(!messages.is_empty(), "no message with MID {mid:#04x}");
        messages
    }
}

/// Returns the number of header octets that Figure 3 puts after the BSDH of this MID, and whether
/// Figure 3 allows payload after them.
pub(crate) fn figure_3(mid: u8) -> Option<(usize, bool)> {
    Some(match mid {
        0x00 => (16, false),
        0x01 => (12, false),
        0x02..=0x04 | 0x08..=0x0a | 0x0e => (0, false),
        0x05..=0x07 | 0x0b | 0x0c => (4, false),
        0x0d => (8, false),
        0xfd => (20, true),
        0xfe => (16, true),
        0xff => (0, true),
        _ => return None,
    })
}

#[test]
fn every_message_occurs() {
    let talk = Talk::held();
    for mid in (0x01..=0x0c).chain(0xfd..=0xff) {
        talk.of(mid);
    }
    for side in 0..2 {
        let by = |what: fn(&Item) -> bool| talk.items.iter().any(|(from, item)| *from == side && what(item));
        assert!(by(|item| matches!(item, Item::Write { .. })), "side {side} writes");
        assert!(by(|item| matches!(item, Item::ReadRequest { .. })), "side {side} reads");
    }
}
