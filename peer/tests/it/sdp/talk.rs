//! One conversation of two machines, as it went over the link. It contains every message of the
//! draft except those of section 13, in every Mode.

use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Half, Policy, Profile, ReceiveId, SendId, Settings, SrcAvailAnswer};

use crate::sdp::bench::{SentMessage, parse_message};
use crate::sdp::host::Item;
use crate::sdp::world::World;

/// Octets of each Private Buffer.
pub(crate) const SIZE: u32 = 64;
/// Private Buffers of each side.
pub(crate) const BUFS: u16 = 9;

/// The items on the link, with the side that sent each: 0 is the Connecting Peer.
pub(crate) struct Talk {
    pub(crate) items: Vec<(usize, Item)>,
    next: u64,
}

impl Talk {
    /// Side 0 prefers Pipelined Mode; side 1 has no preference.
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
        let mut world = World::new(settings(policy(true)), settings(policy(false)));
        let hello = (0, Item::Streaming(world.sent[0][0].clone()));
        world.log = Some(vec![hello]);
        world.settle();
        let mut talk = Talk { items: Vec::new(), next: 0 };
        talk.combined(&mut world);
        for side in 0..2 {
            world.hosts[side].machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
        }
        world.settle();
        talk.pipelined(&mut world);
        for mode in [Mode::Combined, Mode::Buffered] {
            world.hosts[0].machine.set_mode(Half::Out, mode).unwrap();
            world.settle();
            talk.send(&mut world, 1, 5, false);
            talk.receive(&mut world, 0, 50);
            world.settle();
        }
        assert_eq!(world.hosts[0].machine.mode(Half::Out), Mode::Buffered);
        talk.send(&mut world, 0, 300, false);
        for _ in 0..7 {
            talk.receive(&mut world, 1, 300);
            world.settle();
        }
        world.hosts[1].machine.set_mode(Half::In, Mode::Combined).unwrap();
        world.settle();
        for size in [80, 40] {
            world.hosts[0].machine.resize(size);
            world.settle();
            // A larger size is acknowledged after the old buffers are used up.
            for _ in 0..BUFS {
                talk.send(&mut world, 0, 1, false);
                talk.receive(&mut world, 1, 1);
                world.settle();
            }
        }
        world.hosts[0].machine.shut_down();
        world.settle();
        let now = world.now;
        world.hosts[0].machine.abort(now);
        world.settle();
        talk.items = world.log.take().unwrap();
        talk
    }

    fn combined(&mut self, world: &mut World) {
        for side in 0..2 {
            self.send(world, side, 5, false);
            self.send(world, side, 40, true);
            self.receive(world, 1 - side, 100);
            self.receive(world, 1 - side, 100);
            world.settle();
            for answer in [SrcAvailAnswer::Read, SrcAvailAnswer::SendSm] {
                world.hosts[1 - side].machine.policy_mut().answer = answer;
                self.send(world, side, 150, false);
                world.settle();
                self.receive(world, 1 - side, 200);
                world.settle();
            }
            world.hosts[1 - side].machine.policy_mut().answer = SrcAvailAnswer::Read;
        }
    }

    fn pipelined(&mut self, world: &mut World) {
        for side in 0..2 {
            // Read Zcopy, two at a time.
            self.send(world, side, 150, false);
            self.send(world, side, 160, false);
            world.settle();
            for len in [150, 160] {
                self.receive(world, 1 - side, len);
                world.settle();
            }
            self.send(world, side, 170, false);
            world.settle();
            world.hosts[side].machine.cancel_sends();
            world.settle();
            // Write Zcopy, and a Transaction.
            self.receive(world, 1 - side, 100);
            self.receive(world, 1 - side, 101);
            world.settle();
            self.send(world, side, 150, false);
            self.send(world, side, 151, false);
            world.settle();
            self.receive(world, 1 - side, 400);
            world.settle();
            world.hosts[1 - side].machine.cancel_receives();
            world.settle();
            self.send(world, side, 20, false);
            self.receive(world, side, 200);
            self.receive(world, 1 - side, 30);
            world.settle();
            self.send(world, 1 - side, 150, false);
            world.settle();
            self.receive(world, 1 - side, 300);
            self.receive(world, side, 300);
            world.settle();
            for side in 0..2 {
                world.hosts[side].machine.cancel_receives();
            }
            world.settle();
        }
    }

    fn send(&mut self, world: &mut World, side: usize, len: u64, urgent: bool) {
        self.next += 1;
        world.hosts[side].sends.insert(SendId(self.next), (1..=len).map(|octet| octet as u8).collect());
        world.hosts[side].machine.send(SendId(self.next), len, urgent).unwrap();
    }

    fn receive(&mut self, world: &mut World, side: usize, len: u64) {
        self.next += 1;
        world.hosts[side].receives.insert(ReceiveId(self.next), vec![0; usize::try_from(len).unwrap()]);
        world.hosts[side].machine.receive(ReceiveId(self.next), len, false).unwrap();
    }

    /// The Hello.
    pub(crate) fn hello(&self) -> &[u8] {
        let Some((0, Item::Streaming(hello))) = self.items.first() else { panic!("no Hello") };
        hello
    }

    /// All messages after the Hello, with the side that sent each.
    pub(crate) fn messages(&self) -> Vec<(usize, SentMessage)> {
        self.items.iter().filter_map(|(side, item)| Some((*side, parse_message(item.clone())?))).collect()
    }

    /// The messages with this MID, at least one.
    pub(crate) fn of(&self, mid: u8) -> Vec<SentMessage> {
        let messages: Vec<SentMessage> =
            self.messages().into_iter().filter(|(_, message)| message.mid == mid).map(|(_, message)| message).collect();
        assert!(!messages.is_empty(), "no message with MID {mid:#04x}");
        messages
    }
}

/// The number of header octets that Figure 3 puts after the BSDH of this MID, and whether payload
/// may follow.
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
