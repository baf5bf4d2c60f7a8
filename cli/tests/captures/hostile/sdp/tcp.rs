//! Two devices exchange SDP traffic over real TCP on the loopback interface. The monitor reads the
//! traffic log of one device, and must have no findings.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::driver::device::DeviceSettings;
use weft_peer::driver::sdp::{SdpListener, SdpSettings, SdpStream};
use weft_peer::driver::{Device, Direction, EventContent, TrafficLog};
use weft_peer::sdp::{Half, Policy, Profile, Settings};
use weft_peer::verbs::{Node, RnicSettings};

use super::clean::{PROFILES, blamed};
use crate::hostile::capture::Capture;

/// Maximum payload of a TCP segment on the loopback interface in bytes.
const MSS: u16 = 32_768;

fn device(traffic: Option<TrafficLog>) -> Device {
    let rnic = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0;
    Device::with(rnic, DeviceSettings { traffic, ..DeviceSettings::default() })
}

async fn echo(mut stream: SdpStream) {
    let mut buffer = vec![0; 9_999];
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        if read == 0 {
            break;
        }
        stream.write_all(&buffer[..read]).await.unwrap();
    }
    stream.shutdown().await.unwrap();
    stream.closed().await;
}

/// Sends bytes in both directions. Returns a capture of the traffic.
async fn passes(profile: Profile, order: FieldOrder, mode: Mode) -> Capture {
    let traffic = TrafficLog::default();
    let (here, there) = (device(Some(traffic.clone())), device(None));
    let policy = Policy { source_threshold: 5000, sink_threshold: 0, ..Policy::default() };
    let sdp = Settings { profile, order, policy, ..Settings::default() };
    let settings = SdpSettings { sdp, ..SdpSettings::default() };
    let listener = SdpListener::bind(&there, SocketAddr::from(([127, 0, 0, 1], 0)), settings).unwrap();
    let address = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(SdpStream::connect(&here, address, settings), listener.accept());
    let (connected, accepted) = (connected.unwrap(), accepted.unwrap());
    if mode != Mode::Combined {
        connected.set_mode(Half::Out, mode).unwrap();
        accepted.set_mode(Half::Out, mode).unwrap();
    }
    let echo = tokio::spawn(echo(accepted));
    let octets: Vec<u8> = (0..100_000_u32).map(|n| (n ^ n >> 8) as u8).collect();
    let (mut reader, mut writer) = tokio::io::split(connected);
    let sent = octets.clone();
    let writing = tokio::spawn(async move {
        for piece in sent.chunks(33_333) {
            writer.write_all(piece).await.unwrap();
        }
        writer.shutdown().await.unwrap();
        writer
    });
    let mut got = Vec::new();
    reader.read_to_end(&mut got).await.unwrap();
    assert!(got == octets, "{profile:?} {mode}: what came back differs");
    reader.unsplit(writing.await.unwrap()).closed().await;
    echo.await.unwrap();
    assert_eq!(traffic.lost(), 0);
    let mut capture = Capture::connected(MSS);
    for event in traffic.events() {
        let from = usize::from(event.direction == Direction::FromTarget);
        match event.content {
            EventContent::Octets(octets) => capture.octets(from, &octets),
            EventContent::Fin => capture.fin(from),
            EventContent::Reset => capture.reset(from),
            EventContent::Connected { .. } | EventContent::Datagram { .. } | EventContent::Dropped(_) => {}
        }
    }
    capture
}

/// The devices use several threads. Nevertheless, the traffic log must have each write before the
/// answer to this write.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_found_in_correct_traffic_over_tcp() {
    let mut wrong = Vec::new();
    for (index, profile) in PROFILES.into_iter().enumerate() {
        let order = if index % 2 == 0 { FieldOrder::Mirrored } else { FieldOrder::Figure };
        for mode in [Mode::Combined, Mode::Pipelined, Mode::Buffered] {
            let found = blamed(&passes(profile, order, mode).await, profile);
            wrong.extend(found.into_iter().map(|line| format!("{profile:?} {order:?} {mode}: {line}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
