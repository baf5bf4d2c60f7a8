//! Tests the workload `bench`, which transfers a stream of messages. A carrier is the RDMA
//! operation that transfers the data: Send, Write or Read. The tests use each carrier in each
//! direction.

use std::time::Duration;

use weft_peer::driver::Device;
use weft_peer::driver::cm::Listener;
use weft_peer::driver::device::{BusyPoll, DeviceSettings};
use weft_peer::verbs::{Node, RnicSettings};
use weft_peer::workload::bench::{Carrier, Plan, connect_sink, connect_source, serve};

use super::{device, listener, settings};

async fn run(plan: Plan, here: Device, there: &Device, listener: &Listener) {
    let running = async {
        if plan.reverse {
            let (sink, _) = connect_sink(&here, listener.local_addr(), settings(), plan).await.unwrap();
            for count in [1, 100] {
                sink.request(count).await.unwrap();
            }
            sink.disconnect().await.unwrap();
        } else {
            let (source, _) = connect_source(&here, listener.local_addr(), settings(), plan).await.unwrap();
            for count in [1, 100] {
                source.run(count).await.unwrap();
            }
            source.disconnect().await.unwrap();
        }
    };
    let serving = async { serve(there, listener.next().await.unwrap()).await };
    let ((), served) = tokio::join!(running, serving);
    served.unwrap();
}

#[tokio::test]
async fn every_carrier_both_ways() {
    let there = device();
    let listener = listener(&there);
    for carrier in Carrier::ALL {
        for (size, depth, latency) in [(0, 4, false), (4, 1, true), (100_000, 1, false), (5000, 1024, false)] {
            for reverse in [false, true] {
                run(Plan { carrier, size, depth, latency, reverse }, device(), &there, &listener).await;
            }
        }
    }
}

/// If a task of a device has no work, it can poll for some time before it sleeps (busy polling).
/// The stream completes and ends gracefully without busy polling (0 us) and with it (50 us).
#[tokio::test]
async fn busily() {
    let there = device();
    let listener = listener(&there);
    for micros in [0, 50] {
        for (carrier, size, depth, latency) in [(Carrier::Send, 4, 1, true), (Carrier::Write, 100_000, 64, false)] {
            let (rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
            let busy_poll = BusyPoll::For(Duration::from_micros(micros));
            let here = Device::with(rnic, DeviceSettings { busy_poll, ..DeviceSettings::default() });
            run(Plan { carrier, size, depth, latency, reverse: false }, here, &there, &listener).await;
        }
    }
}
