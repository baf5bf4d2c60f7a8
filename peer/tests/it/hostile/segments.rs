//! Checks of deviations (named faults of an endpoint) in the TCP of the target. On the virtual link,
//! the tester chooses its TCP segments.

use std::time::Duration;

use weft_peer::driver::{Fragments, Link, Received, TesterConnection, VirtualLink};
use weft_peer::{Deviations, Settings};

use crate::connection::machine::{REPLY, REQUEST, SEND, WRITE};
use crate::hostile::Check;

/// Returns the link to an echo with these deviations.
fn link(deviations: &Deviations) -> Link {
    Link::Virtual(VirtualLink::echo(Settings { deviations: deviations.clone(), ..Settings::default() }))
}

/// Runs the steps of a tester on the virtual link, which needs no timer.
fn run<T>(steps: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(steps)
}

/// Returns what the target does in the next second.
async fn next(connection: &mut TesterConnection) -> Received {
    let deadline = connection.now() + Duration::from_secs(1);
    connection.receive(deadline).await.unwrap()
}

/// Reads at most eight bytes that the target sends in the next second.
async fn next_part(connection: &mut TesterConnection) -> Received {
    let deadline = connection.now() + Duration::from_secs(1);
    connection.receive_at_most(deadline, 8).await.unwrap()
}

/// Returns a connection after start-up.
async fn started(link: &mut Link) -> TesterConnection {
    let mut connection = link.connect().await.unwrap();
    connection.send(REQUEST).await.unwrap();
    assert!(is_reply(&next(&mut connection).await));
    connection
}

fn is_reply(received: &Received) -> bool {
    matches!(received, Received::Octets(octets) if octets[..] == REPLY[..])
}

pub(crate) const CHECKS: &[Check] = &[
    ("mpa.begins-with-first-arrival", |d| {
        run(async {
            let mut connection = link(d).connect().await.unwrap();
            connection.withhold(REQUEST).await.unwrap();
            connection.send_segment(16, &REQUEST[16..], None).await.unwrap();
            connection.send_segment(0, &REQUEST[..16], None).await.unwrap();
            connection.send_withheld().await.unwrap();
            !is_reply(&next(&mut connection).await)
        })
    }),
    ("mpa.changes-byte-at-small-window", |d| {
        run(async {
            let mut connection = started(&mut link(d)).await;
            connection.send(SEND).await.unwrap();
            let mut received = Vec::new();
            while let Received::Octets(octets) = next_part(&mut connection).await {
                received.extend_from_slice(&octets);
            }
            assert_eq!(received.len(), SEND.len());
            received[..] != SEND[..]
        })
    }),
    ("mpa.loses-bytes-after-wrap", |d| {
        run(async {
            let mut link = link(d);
            // The sequence number of the tenth byte after the Request is 0.
            link.set_first_sequence(0_u32.wrapping_sub(30)).unwrap();
            let mut connection = started(&mut link).await;
            connection.send(SEND).await.unwrap();
            next(&mut connection).await == Received::TimedOut
        })
    }),
    ("mpa.loses-ip-fragments", |d| {
        run(async {
            let mut connection = started(&mut link(d)).await;
            connection.withhold(SEND).await.unwrap();
            let fragments = Fragments { most: 8, last_first: false };
            connection.send_segment(0, SEND, Some(fragments)).await.unwrap();
            connection.send_withheld().await.unwrap();
            next(&mut connection).await == Received::TimedOut
        })
    }),
    ("mpa.passes-duplicate", |d| {
        run(async {
            let mut connection = started(&mut link(d)).await;
            connection.send(SEND).await.unwrap();
            assert!(matches!(next(&mut connection).await, Received::Octets(_)));
            let len = i64::try_from(SEND.len()).unwrap();
            connection.send_segment(-len, SEND, None).await.unwrap();
            next(&mut connection).await != Received::TimedOut
        })
    }),
    ("mpa.passes-over-gap", |d| {
        run(async {
            let mut connection = started(&mut link(d)).await;
            connection.withhold(&[WRITE, SEND].concat()).await.unwrap();
            let begin = i64::try_from(WRITE.len()).unwrap();
            connection.send_segment(begin, SEND, None).await.unwrap();
            next(&mut connection).await != Received::TimedOut
        })
    }),
];

/// Returns whether the target answers on a connection while the tester does not read the answer on
/// another connection.
fn serves_neighbour(deviations: &Deviations) -> bool {
    run(async {
        let mut link = link(deviations);
        // The first bytes of an answer fill the window.
        link.set_receive_buffer(1);
        let mut unread = started(&mut link).await;
        let mut other = started(&mut link).await;
        unread.send(SEND).await.unwrap();
        assert_eq!(next(&mut other).await, Received::TimedOut);
        other.send(SEND).await.unwrap();
        next(&mut other).await != Received::TimedOut
    })
}

#[test]
fn only_a_deviation_makes_connections_depend_on_each_other() {
    assert!(serves_neighbour(&Deviations::NONE));
    assert!(!serves_neighbour(&Deviations::from_names(["rdmap.blocks-other-connections"]).unwrap()));
}
