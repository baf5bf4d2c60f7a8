//! These tests examine the internals of an engine. They use sockets of two devices in one process,
//! and check which memory the engine registers, keeps and frees. `peer/tests/it/sdp_socket` tests
//! the sockets' behaviour.

use std::collections::BTreeSet;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weft_core::wire::sdp::Mode;

use super::*;
use crate::driver::sdp::area::{self, Area};
use crate::driver::sdp::{SdpListener, SdpStream};
use crate::memory::{Access, Stag};
use crate::sdp::{Half, Policy, Settings};
use crate::verbs::{Node, RnicSettings};

fn device() -> Device {
    Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0)
}

async fn pair() -> (SdpStream, SdpStream) {
    let policy = Policy { source_threshold: 5000, sink_threshold: 0, ..Policy::default() };
    let settings = SdpSettings { sdp: Settings { policy, ..Settings::default() }, ..SdpSettings::default() };
    let listener = SdpListener::bind(&device(), ([127, 0, 0, 1], 0).into(), settings).unwrap();
    let address = listener.local_addr().unwrap();
    let here = device();
    let (here, there) = tokio::join!(SdpStream::connect(&here, address, settings), listener.accept());
    (here.unwrap(), there.unwrap())
}

/// Returns the access rights of all posted receives that are registered.
fn reachable(stream: &SdpStream) -> Vec<Access> {
    let engine = stream.lock();
    let areas = engine.receives.values().filter_map(Posted::own_area);
    let stags = areas.filter_map(Area::stag).map(|stag| Stag::from_bits(stag).unwrap());
    let access = |stag: Stag| engine.device.verbs(|rnic| rnic.memory().query_region(stag.index).unwrap().access);
    stags.filter_map(access).collect()
}

/// By section 9.3 of the SDP draft, the peer is allowed to access a buffer from SinkAvail to
/// RdmaWrCompl, and at no other time.
#[tokio::test]
async fn a_receive_is_the_peers_while_it_is_advertised() {
    let (mut here, mut there) = pair().await;
    let mut octets = [0; 20_000];
    assert_eq!(reachable(&there), [], "the receives are posted, but not advertised");
    here.write_all(&[1; 20_000]).await.unwrap();
    there.read_exact(&mut octets).await.unwrap();
    assert_eq!(there.statistics().receiving.moved.read_zcopy.operations, 1);
    assert_eq!(reachable(&there), [], "the Read has finished");
    here.set_mode(Half::Out, Mode::Pipelined).unwrap();
    here.write_all(&[2]).await.unwrap();
    there.read_exact(&mut octets[..1]).await.unwrap();
    let adverts = there.statistics().receiving.adverts;
    assert!(adverts > 0);
    assert_eq!(reachable(&there), vec![area::SINK; adverts]);
    here.set_mode(Half::Out, Mode::Combined).unwrap();
    here.write_all(&[3]).await.unwrap();
    there.read_exact(&mut octets[..1]).await.unwrap();
    assert_eq!((there.statistics().receiving.adverts, reachable(&there)), (0, vec![]));
}

/// A task that waits in a `select!` with other futures registers repeatedly.
#[tokio::test]
async fn a_task_that_registers_repeatedly_is_woken_once() {
    let (here, _there) = pair().await;
    core::future::poll_fn(|cx| {
        for _ in 0..1000 {
            assert!(here.poll_urgent(cx).is_pending());
        }
        core::task::Poll::Ready(())
    })
    .await;
    assert_eq!(here.lock().watchers.len(), 1);
}

#[test]
fn keys_are_not_all_the_same() {
    let device = device();
    let pd = device.verbs(|rnic| rnic.memory_mut().allocate_pd()).unwrap();
    let key = || {
        let mut area = device.verbs(|rnic| Area::new(rnic, 10)).unwrap();
        device.verbs(|rnic| area.register(rnic, pd, area::SINK)).unwrap().to_be_bytes()[3]
    };
    let keys: BTreeSet<u8> = (0..64).map(|_| key()).collect();
    assert!(keys.len() > 8, "{keys:?}");
}
