//! Sends arbitrary octets to a connection. They never cause a panic. The connection never delivers
//! more than the posted receives can hold.

use proptest::prelude::*;
use std::time::Duration;
use weft_peer::connection::{Event, Transmit};
use weft_peer::{Deviations, Settings};

use crate::connection::machine::{Machine, REPLY, REQUEST, SEND, WRITE, mpa};

/// An event of a connection.
#[derive(Debug, Clone)]
enum Step {
    Octets(Vec<u8>),
    Fin,
    Reset,
    Pass(u32),
    Post(u16),
    Receive(u16),
    Close,
    Abort,
}

fn step() -> impl Strategy<Value = Step> {
    let known = prop::sample::select(vec![&REQUEST[..], &REPLY[..], SEND, WRITE]);
    let mangled = (known.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(octets, at, change)| {
        let mut octets = octets.to_vec();
        let at = at.index(octets.len());
        octets[at] ^= change;
        octets
    });
    prop_oneof![
        6 => known.prop_map(|octets| Step::Octets(octets.to_vec())),
        4 => mangled.prop_map(Step::Octets),
        2 => prop::collection::vec(any::<u8>(), 0..3000).prop_map(Step::Octets),
        1 => Just(Step::Fin),
        1 => Just(Step::Reset),
        2 => (0u32..70_000).prop_map(Step::Pass),
        2 => any::<u16>().prop_map(Step::Post),
        2 => any::<u16>().prop_map(Step::Receive),
        1 => Just(Step::Close),
        1 => Just(Step::Abort),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For any events in any order, three conditions are met: nothing panics; the end is reported
    /// once, and it is the last event; after FIN, the connection sends nothing but a reset.
    #[test]
    fn any_sequence_keeps_the_contract(
        initiator: bool, accept: bool, deviates: bool, steps in prop::collection::vec(step(), 0..40),
    ) {
        let deviations = if deviates { Deviations::from_names(["mpa.accepts-wrong-key"]).unwrap() } else { Deviations::NONE };
        let settings = Settings { accept, deviations, ..Settings::default() };
        let mut machine = if initiator { Machine::initiator(settings) } else { Machine::responder(settings) };
        for step in steps {
            match step {
                Step::Octets(octets) => machine.octets(&octets),
                Step::Fin => machine.fin(),
                Step::Reset => machine.reset(),
                Step::Pass(millis) => machine.pass(Duration::from_millis(millis.into())),
                Step::Post(length) => drop(machine.connection.post_send(vec![0; length.into()])),
                Step::Receive(length) => drop(machine.connection.post_receive(length.into())),
                Step::Close => machine.close(),
                Step::Abort => machine.connection.abort(),
            }
            machine.settle();
        }
        // After `close`, the connection ends, even if its peer is silent.
        machine.close();
        machine.pass(Duration::from_secs(100));
        prop_assert!(machine.connection.is_over());
        let ends = machine.events.iter().filter(|event| matches!(event, Event::Closed(_))).count();
        prop_assert_eq!(ends, 1);
        prop_assert!(machine.closed().is_some());
        let fin = machine.sent.iter().position(|sent| *sent == Transmit::Fin).unwrap_or(machine.sent.len());
        prop_assert!(machine.sent[fin..].iter().skip(1).all(|sent| *sent == Transmit::Reset));
    }

    /// The number of delivered messages never exceeds the number of posted receives. Each delivered
    /// message fits into its receive.
    #[test]
    fn deliveries_fit_the_posted_receives(receives in 0usize..5, pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..20)) {
        let mut machine = Machine::responder(mpa(|mpa| mpa.crc = false));
        machine.octets(b"MPA ID Req Frame\x00\x01\x00\x00");
        for _ in 0..receives {
            machine.connection.post_receive(100).unwrap();
        }
        for piece in pieces {
            // A valid header is followed by arbitrary octets. The number of messages can exceed the
            // number of receives, and a message can be longer than its receive.
            let mut ulpdu = b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0".to_vec();
            ulpdu[13] = machine.received().len() as u8 + 1;
            ulpdu.extend_from_slice(&piece);
            let mut fpdu = u16::try_from(ulpdu.len()).unwrap().to_be_bytes().to_vec();
            fpdu.extend_from_slice(&ulpdu);
            fpdu.resize(fpdu.len().next_multiple_of(4) + 4, 0);
            machine.octets(&fpdu);
        }
        let received = machine.received();
        prop_assert!(received.len() <= receives);
        prop_assert!(received.iter().all(|octets| octets.len() <= 100));
    }
}
