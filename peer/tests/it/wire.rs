//! Tests the tester's own TCP against another TCP, over a pair of connected sockets in place of an
//! Ethernet cable. So the tests need no privileges. The far end echoes what it receives, and records
//! all frames.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, HardwareAddress, IpCidr, IpProtocol, Ipv4Packet, TcpPacket,
};
use weft_peer::driver::{
    Direction, EthernetInterface, EventContent, Fragments, Link, LinkError, Received, TcpLink, TesterConnection,
    WireAddress, WireLink, WireStack,
};

const PORT: u16 = 7174;
/// Time in which an echo over the cable arrives. A retransmission of smoltcp takes 1 s.
const LIMIT: Duration = Duration::from_secs(20);
/// Time in which nothing must arrive.
const QUIET: Duration = Duration::from_millis(100);
/// The far end looks for the end of the test in this interval.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The tester's end of the cable.
#[derive(Debug)]
struct Cable(UnixDatagram);

impl EthernetInterface for Cable {
    fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; 2048];
        match self.0.recv(&mut frame) {
            Ok(len) => {
                frame.truncate(len);
                Ok(Some(frame))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.0.send(frame).map(|_| ())
    }

    fn mtu(&self) -> usize {
        1500
    }

    fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

/// The far end of the cable. Records the frames that it receives.
struct FarDevice {
    cable: UnixDatagram,
    frames: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Device for FarDevice {
    type RxToken<'a> = Frame;
    type TxToken<'a> = Sender<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Frame, Sender<'_>)> {
        let mut frame = vec![0; 2048];
        let len = self.cable.recv(&mut frame).ok()?;
        frame.truncate(len);
        self.frames.lock().unwrap().push(frame.clone());
        Some((Frame(frame), Sender(&self.cable)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sender<'_>> {
        Some(Sender(&self.cable))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ethernet, 1514);
        capabilities
    }
}

struct Frame(Vec<u8>);

impl phy::RxToken for Frame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Sender<'a>(&'a UnixDatagram);

impl phy::TxToken for Sender<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0_u8; len];
        let result = f(&mut frame);
        // At the end of a test, the tester's end may already be closed.
        let _ = self.0.send(&frame);
        result
    }
}

/// An echo server at the far end of the cable.
struct Far {
    frames: Arc<Mutex<Vec<Vec<u8>>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Far {
    fn start(cable: UnixDatagram, address: IpCidr) -> Self {
        // `recv` returns after this time, so that the timers of the far end work.
        cable.set_read_timeout(Some(CHECK_INTERVAL)).unwrap();
        let (frames, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let device = FarDevice { cable, frames: Arc::clone(&frames) };
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || serve(device, address, &stop)
        });
        Far { frames, stop, thread: Some(thread) }
    }

    /// Returns the payloads of all IPv4 packets that the far end has received.
    fn packets(&self) -> Vec<(Ipv4Header, Vec<u8>)> {
        let frames = self.frames.lock().unwrap();
        let packet = |frame: &Vec<u8>| {
            let ethernet = EthernetFrame::new_checked(&frame[..]).unwrap();
            if ethernet.ethertype() != EthernetProtocol::Ipv4 {
                return None;
            }
            let ip = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
            assert!(ip.verify_checksum() && ip.next_header() == IpProtocol::Tcp);
            let header = Ipv4Header { offset: ip.frag_offset(), has_more: ip.more_frags() };
            Some((header, ip.payload().to_vec()))
        };
        frames.iter().filter_map(packet).collect()
    }

    /// Returns sequence number and bytes of all TCP segments with bytes.
    fn segments(&self) -> Vec<(u32, Vec<u8>)> {
        let segment = |(_, octets): (Ipv4Header, Vec<u8>)| {
            let tcp = TcpPacket::new_checked(&octets[..]).unwrap();
            (tcp.seq_number().0.cast_unsigned(), tcp.payload().to_vec())
        };
        self.packets().into_iter().map(segment).filter(|(_, octets)| !octets.is_empty()).collect()
    }
}

/// The fields of an IPv4 header that describe a fragment.
struct Ipv4Header {
    offset: u16,
    has_more: bool,
}

impl Drop for Far {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Echoes on one connection after another, until `stop` is set.
fn serve(mut device: FarDevice, address: IpCidr, stop: &AtomicBool) {
    let hardware = HardwareAddress::Ethernet(EthernetAddress([2, 0, 0, 0, 0, 1]));
    let mut interface = Interface::new(Config::new(hardware), &mut device, Instant::now());
    interface.update_ip_addrs(|addresses| addresses.push(address).unwrap());
    let mut sockets = SocketSet::new(Vec::new());
    let socket = Socket::new(SocketBuffer::new(vec![0; 65_536]), SocketBuffer::new(vec![0; 65_536]));
    let handle = sockets.add(socket);
    // The first SYN may wait already.
    sockets.get_mut::<Socket<'_>>(handle).listen(PORT).unwrap();
    while !stop.load(Relaxed) {
        interface.poll(Instant::now(), &mut device, &mut sockets);
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        if socket.can_recv() && socket.can_send() {
            let octets = socket.recv(|octets| (octets.len(), octets.to_vec())).unwrap();
            assert_eq!(socket.send_slice(&octets).unwrap(), octets.len());
        }
        match socket.state() {
            State::CloseWait if !socket.can_recv() => socket.close(),
            State::Closed => socket.listen(PORT).unwrap(),
            _ => {}
        }
    }
}

/// The address of the tester with its prefix length, and the address of the far end.
const V4: (&str, &str) = ("192.0.2.9/24", "192.0.2.17");
const V6: (&str, &str) = ("2001:db8::9/64", "2001:db8::17");

/// Connects a tester and an echo server by a cable.
fn cable(addresses: (&str, &str)) -> (WireLink, Far) {
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let target: IpAddr = addresses.1.parse().unwrap();
    let address = WireAddress::parse(addresses.0, None).unwrap();
    let far = Far::start(far, IpCidr::new(target.into(), if target.is_ipv4() { 24 } else { 64 }));
    let stack = WireStack::open(Box::new(Cable(near)), address).unwrap();
    (WireLink::new(&stack, (target, PORT).into()), far)
}

/// Receives exactly these bytes, and then nothing.
async fn expect(connection: &mut TesterConnection, expected: &[u8]) {
    let mut received = Vec::new();
    while received.len() < expected.len() {
        let deadline = connection.now() + LIMIT;
        match connection.receive(deadline).await.unwrap() {
            Received::Octets(octets) => received.extend_from_slice(&octets),
            other => panic!("{other:?} after {received:?}"),
        }
    }
    assert_eq!(received, expected);
    expect_nothing(connection).await;
}

async fn expect_nothing(connection: &mut TesterConnection) {
    let deadline = connection.now() + QUIET;
    assert_eq!(connection.receive(deadline).await.unwrap(), Received::TimedOut);
}

#[tokio::test]
async fn connects_echoes_and_closes() {
    for addresses in [V4, V6] {
        let (link, _far) = cable(addresses);
        let mut link = Link::Wire(link);
        let next = link.next_address();
        let mut connection = link.connect().await.unwrap();
        assert_eq!(Some(connection.addresses().0), next);
        connection.send(b"hello").await.unwrap();
        expect(&mut connection, b"hello").await;
        connection.finish().await.unwrap();
        let deadline = connection.now() + LIMIT;
        assert_eq!(connection.receive(deadline).await.unwrap(), Received::Fin);
        assert!(matches!(connection.send(b"x").await, Err(LinkError::Finished)));
        let events: Vec<_> = link.traffic().events().into_iter().map(|event| event.content).collect();
        let octets = EventContent::Octets(Bytes::from_static(b"hello"));
        assert_eq!(events[1..], [octets.clone(), octets, EventContent::Fin, EventContent::Fin]);
    }
}

#[tokio::test]
async fn withheld_segments_arrive_reordered_and_are_echoed_once() {
    let (link, far) = cable(V4);
    let mut link = Link::Wire(link);
    let mut connection = link.connect().await.unwrap();
    connection.send(b"before").await.unwrap();
    expect(&mut connection, b"before").await;
    connection.withhold(b"abcdef").await.unwrap();
    connection.send_segment(4, b"ef", None).await.unwrap();
    connection.send_segment(2, b"cd", None).await.unwrap();
    expect_nothing(&mut connection).await;
    connection.send_segment(0, b"ab", None).await.unwrap();
    connection.send_withheld().await.unwrap();
    expect(&mut connection, b"abcdef").await;
    // From now on, TCP chooses the segments.
    connection.send(b"after").await.unwrap();
    expect(&mut connection, b"after").await;
    let segments = far.segments();
    let begin = segments[0].0;
    let relative: Vec<(u32, &[u8])> =
        segments.iter().map(|(sequence, octets)| (sequence.wrapping_sub(begin), &octets[..])).collect();
    assert_eq!(
        relative,
        [(0, &b"before"[..]), (10, &b"ef"[..]), (8, &b"cd"[..]), (6, &b"ab"[..]), (12, &b"after"[..])]
    );
    let sent: Vec<u8> = link
        .traffic()
        .events()
        .into_iter()
        .filter(|event| event.direction == Direction::ToTarget)
        .flat_map(|event| if let EventContent::Octets(octets) = event.content { octets.to_vec() } else { Vec::new() })
        .collect();
    assert_eq!(sent, b"beforeabcdefafter");
}

#[tokio::test]
async fn bytes_that_no_segment_had_leave_at_the_end() {
    let (link, _far) = cable(V4);
    let mut connection = Link::Wire(link).connect().await.unwrap();
    connection.withhold(b"abcdef").await.unwrap();
    connection.send_segment(2, b"cd", None).await.unwrap();
    expect_nothing(&mut connection).await;
    connection.send_withheld().await.unwrap();
    expect(&mut connection, b"abcdef").await;
}

#[tokio::test]
async fn a_retransmission_with_other_bytes_is_not_echoed() {
    let (link, far) = cable(V4);
    let mut connection = Link::Wire(link).connect().await.unwrap();
    connection.send(b"abcd").await.unwrap();
    expect(&mut connection, b"abcd").await;
    connection.send_segment(-4, b"WXYZ", None).await.unwrap();
    expect_nothing(&mut connection).await;
    let segments = far.segments();
    assert_eq!((segments[1].0, &segments[1].1[..]), (segments[0].0, &b"WXYZ"[..]));
}

#[tokio::test]
async fn the_first_sequence_number_wraps_around() {
    let (link, far) = cable(V4);
    let mut link = Link::Wire(link);
    link.set_first_sequence(u32::MAX - 2).unwrap();
    let mut connection = link.connect().await.unwrap();
    for octets in [&b"abcd"[..], b"efgh"] {
        connection.send(octets).await.unwrap();
        expect(&mut connection, octets).await;
    }
    let sequences: Vec<u32> = far.segments().iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(sequences, [u32::MAX - 2, 1]);
    let mut tcp = Link::Tcp(TcpLink::new(([127, 0, 0, 1], 1).into()));
    assert!(matches!(tcp.set_first_sequence(1), Err(LinkError::NoSegments)));
}

#[tokio::test]
async fn fragments_carry_a_segment() {
    for last_first in [false, true] {
        let (link, far) = cable(V4);
        let mut connection = Link::Wire(link).connect().await.unwrap();
        connection.withhold(&[7; 100]).await.unwrap();
        // The segment has 120 bytes with its header.
        connection.send_segment(0, &[7; 100], Some(Fragments { most: 50, last_first })).await.unwrap();
        connection.send_withheld().await.unwrap();
        expect(&mut connection, &[7; 100]).await;
        let mut fragments: Vec<(u16, bool)> = far
            .packets()
            .iter()
            .filter(|(header, _)| header.offset > 0 || header.has_more)
            .map(|(header, _)| (header.offset, header.has_more))
            .collect();
        if last_first {
            fragments.reverse();
        }
        assert_eq!(fragments, [(0, true), (48, true), (96, false)], "{last_first}");
    }
}

#[tokio::test]
async fn a_connection_that_fails_is_explained() {
    let (link, far) = cable(V4);
    let mut link = Link::Wire(link).with_connect_timeout(Duration::from_secs(1));
    let refused = link.connect_to(([192, 0, 2, 17], 1).into(), None).await.unwrap_err();
    assert!(
        matches!(&refused, LinkError::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused),
        "{refused}"
    );
    let absent = link.connect_to(([192, 0, 2, 99], PORT).into(), None).await.unwrap_err();
    assert!(matches!(absent, LinkError::ConnectTimeout { .. }), "{absent}");
    let elsewhere = link.connect_to(([198, 51, 100, 1], PORT).into(), None).await.unwrap_err();
    assert!(elsewhere.to_string().contains("gateway"), "{elsewhere}");
    drop(far);
}

#[tokio::test]
async fn a_reset_is_sent_and_a_small_window_is_announced() {
    let (link, far) = cable(V4);
    let mut link = Link::Wire(link);
    link.set_receive_buffer(2048);
    let mut connection = link.connect().await.unwrap();
    connection.reset().await.unwrap();
    assert_eq!(connection.receive(connection.now()).await.unwrap(), Received::Reset);
    // The far end has only one socket. It refuses connections until it has received the reset.
    let mut connection = loop {
        if let Ok(connection) = link.connect().await {
            break connection;
        }
    };
    connection.send(b"again").await.unwrap();
    expect(&mut connection, b"again").await;
    let packets = far.packets();
    let segments: Vec<_> = packets.iter().map(|(_, octets)| TcpPacket::new_checked(&octets[..]).unwrap()).collect();
    assert!(segments[0].syn() && segments[0].window_len() == 2048);
    assert_eq!(segments.iter().filter(|segment| segment.rst()).count(), 1);
}

#[tokio::test]
async fn a_read_of_one_byte_opens_a_closed_window_by_one_byte() {
    let (link, far) = cable(V4);
    let mut link = Link::Wire(link);
    link.set_receive_buffer(4);
    let mut connection = link.connect().await.unwrap();
    connection.send(b"abcdefgh").await.unwrap();
    let mut received = Vec::new();
    while received.len() < 8 {
        let deadline = connection.now() + LIMIT;
        match connection.receive_at_most(deadline, 1).await.unwrap() {
            Received::Octets(octets) if octets.len() == 1 => received.extend_from_slice(&octets),
            other => panic!("{other:?} after {received:?}"),
        }
    }
    assert_eq!(received, b"abcdefgh");
    let packets = far.packets();
    let windows: Vec<u16> =
        packets.iter().map(|(_, octets)| TcpPacket::new_checked(&octets[..]).unwrap().window_len()).collect();
    assert!(windows.contains(&1) && windows.iter().all(|window| *window <= 4), "{windows:?}");
}
