//! Tests SDP sockets over real TCP. The test is the peer, in the bare profile (FPDUs follow the
//! Hello without MPA start-up frames). The tests check behaviour that depends on the RNIC and the
//! socket. The section numbers are those of draft-pinkerton-iwarp-sdp-01.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod raw;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement;
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpError, SdpListener, SdpSettings, SdpStream};
use weft_peer::sdp::{Policy, Profile, Settings};
use weft_peer::verbs::{Node, RnicSettings};

use raw::{READ_RESPONSE, Raw, TERMINATE, terminate, written};

/// LocIRD of the side under test.
const IRD: u16 = 3;
const DIS_CONN: u8 = 2;
const DATA: u8 = 0xff;
const SRC_AVAIL: u8 = 0xfe;
const SINK_AVAIL: u8 = 0xfd;
const SUSP_COMM: u8 = 0x0d;
const SUSP_COMM_ACK: u8 = 0x0e;

fn device() -> Device {
    device_with(RnicSettings::default())
}

fn device_with(settings: RnicSettings) -> Device {
    Device::new(Node::new(["weft0"]).open("weft0", settings).unwrap().0)
}

fn settings() -> SdpSettings {
    let policy = Policy { source_threshold: 5000, sink_threshold: 0, src_avail_payload: 1, ..Policy::default() };
    let sdp =
        Settings { profile: Profile::Bare, ird: IRD, recv_size: 64, des_rem_rcv_sz: 64, policy, ..Settings::default() };
    SdpSettings { sdp, ..SdpSettings::default() }
}

/// Hello (figure 5): 16 Private Buffers of 8192 octets, MaxAdverts 16, version 1.1, LocIRD and
/// LocORD 16.
fn hello() -> Vec<u8> {
    let words = [0x0010_0000u32, 32, 0, 0, 0x0010_0011, 64, 8192, 0x0010_0010];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A HelloAck (figure 6) with the values of [`hello`].
fn hello_ack(bufs: u16) -> Vec<u8> {
    let words = [u32::from(bufs) << 16 | 1, 28, 0, 0, 0x0010_0011, 8192, 0x0010_0010];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A socket that connected to the synthetic peer, and LocIRD of its Hello.
async fn connected(settings: SdpSettings, bufs: u16) -> (SdpStream, Raw, u16) {
    connected_by(&device(), settings, bufs).await
}

async fn connected_by(here: &Device, settings: SdpSettings, bufs: u16) -> (SdpStream, Raw, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let peer = async {
        let mut raw = Raw::new(listener.accept().await.unwrap().0);
        raw.bufs = bufs;
        let hello = raw.octets(32).await;
        raw.edge = u32::from(u16::from_be_bytes([hello[0], hello[1]]));
        let ack = raw.send(&hello_ack(bufs));
        raw.write(&ack).await;
        (raw, u16::from_be_bytes([hello[28], hello[29]]))
    };
    let (stream, (raw, ird)) = tokio::join!(SdpStream::connect(here, address, settings), peer);
    (stream.unwrap(), raw, ird)
}

/// A socket that accepted the synthetic peer, and LocIRD of its HelloAck.
async fn accepted(settings: SdpSettings) -> (SdpStream, Raw, u16) {
    let listener = SdpListener::bind(&device(), SocketAddr::from(([127, 0, 0, 1], 0)), settings).unwrap();
    let address = listener.local_addr().unwrap();
    let peer = async {
        let mut raw = Raw::new(TcpStream::connect(address).await.unwrap());
        raw.write(&hello()).await;
        let ack = raw.segment().await;
        assert_eq!((ack.payload.len(), ack.payload[3]), (28, 1));
        (raw, u16::from_be_bytes([ack.payload[24], ack.payload[25]]))
    };
    let (stream, (raw, ird)) = tokio::join!(listener.accept(), peer);
    (stream.unwrap(), raw, ird)
}

/// Makes the socket advertise octets. Reads them with concurrent Reads, as many as the socket
/// announced (LocIRD). Returns the octets.
async fn read_at_once((mut stream, mut raw, ird): (SdpStream, Raw, u16)) -> Option<Vec<u8>> {
    assert_eq!(ird, IRD);
    let octets: Vec<u8> = (0..30_000u32).map(|at| (at ^ at >> 8) as u8).collect();
    stream.write_all(&octets).await.unwrap();
    let advert = raw.message().await;
    assert_eq!((advert.mid, advert.word(0)), (SRC_AVAIL, 30_000));
    let part = 30_000 / u32::from(ird);
    let requests: Vec<u8> = (0..u32::from(ird))
        .flat_map(|nth| raw.read(part, advert.word(4), advert.va() + u64::from(nth * part)))
        .collect();
    raw.write(&requests).await;
    let (mut got, mut answers) = (Vec::new(), 0);
    while answers < ird {
        let segment = raw.segment().await;
        if segment.opcode == TERMINATE {
            return None;
        }
        assert_eq!(segment.opcode, READ_RESPONSE);
        got.extend(segment.payload);
        answers += u16::from(segment.last);
    }
    (got == octets).then_some(got)
}

#[tokio::test]
async fn serves_loc_ird_reads_at_once() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let connecting = read_at_once(connected(settings(), 16).await).await;
    let accepting = read_at_once(accepted(settings()).await).await;
    proof.verify(requirement!("SDP-6.2.1.6-1"), || assert!(connecting.is_some()));
    proof.verify(requirement!("SDP-8.1.1-8"), || assert_eq!(connecting.as_ref().map(Vec::len), Some(30_000)));
    proof.verify(requirement!("SDP-6.2.2.5-1"), || assert!(accepting.is_some()));
    proof.verify(requirement!("SDP-14.1-1"), || assert_eq!(connecting, accepting));
}

#[tokio::test]
async fn an_advertised_receive_can_be_written() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut stream, mut raw, _) = accepted(settings()).await;
    // The peer is the Data Source and changes to Pipelined Mode.
    let change = raw.build(7, &4u32.to_be_bytes());
    raw.write(&change).await;
    let advert = raw.message().await;
    assert_eq!(advert.mid, SINK_AVAIL);
    let octets: Vec<u8> = (1..=200).collect();
    let write = [written(advert.word(4), advert.va(), &octets), raw.build(5, &200u32.to_be_bytes())].concat();
    raw.write(&write).await;
    let mut got = vec![0; 200];
    stream.read_exact(&mut got).await.unwrap();
    proof.verify(requirement!("SDP-14.1-2"), || assert_eq!(got, octets));
}

/// The peer accepts only one message with payload.
#[tokio::test]
async fn accepts_as_much_as_so_sndbuf_holds() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut stream, mut raw, _) = connected(SdpSettings { send_buffer: 4000, ..settings() }, 3).await;
    let taken = tokio::time::timeout(Duration::from_secs(20), stream.write_all(&[7; 4000])).await;
    proof.verify(requirement!("SDP-9.5.6-2"), || assert!(taken.is_ok_and(|taken| taken.is_ok())));
    assert_eq!(raw.message().await.rest.len(), 4000);
}

/// The user does not read. Each message that arrives has one octet.
#[tokio::test]
async fn accepts_single_octets_until_so_rcvbuf_is_full() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut stream, mut raw, _) = connected(SdpSettings { receive: 100, receives: 5, ..settings() }, 16).await;
    for octet in 0..500u32 {
        // Two credits are reserved, so a message with payload needs a third credit.
        while raw.edge - raw.mseq < 3 {
            assert_eq!(raw.message().await.mid, DATA, "after {octet} bytes");
        }
        let data = raw.build(DATA, &[octet as u8]);
        raw.write(&data).await;
    }
    let sent: Vec<u8> = (0..500u32).map(|octet| octet as u8).collect();
    let mut got = vec![0; 500];
    stream.read_exact(&mut got).await.unwrap();
    proof.verify(requirement!("SDP-9.5.6-1"), || assert_eq!(got, sent));
    proof.verify(requirement!("SDP-9.5.6-3"), || assert_eq!(raw.mseq, 500));
}

/// After the Hello, an SDP socket sends only iWARP to the address of the peer. In PM-7.1-3, this
/// address has the name "SDP Address".
#[tokio::test]
async fn only_iwarp_follows_the_hello() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let (mut stream, mut raw, _) = connected(settings(), 16).await;
    stream.write_all(&[7; 3000]).await.unwrap();
    stream.shutdown().await.unwrap();
    // Each octet is part of an FPDU with the correct length and CRC.
    let mids = [raw.message().await.mid, raw.message().await.mid];
    proof.verify(requirement!("PM-7.1-3"), || assert_eq!(mids, [DATA, DIS_CONN]));
}

/// RFC 5044 section 7.1.2, rule 2: the connecting side reads the rejecting Reply, and then the end
/// of TCP.
#[tokio::test]
async fn a_refused_hello_in_private_data_is_answered_before_tcp_ends() {
    let listener = SdpListener::bind(&device(), SocketAddr::from(([127, 0, 0, 1], 0)), settings()).unwrap();
    let mut raw = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let refused = async {
        // This Hello has MajV 2, which is not supported.
        let mut hello = hello();
        hello[19] = 0x12;
        raw.write_all(&[&b"MPA ID Req Frame\x40\x01\0\x20"[..], &hello].concat()).await.unwrap();
        let mut reply = Vec::new();
        raw.read_to_end(&mut reply).await.unwrap();
        reply
    };
    let (accepted, reply) = tokio::join!(listener.accept(), refused);
    assert!(accepted.unwrap_err().to_string().contains("MajV 2"));
    // The flag R is set in the Reply.
    assert_eq!(reply, b"MPA ID Rep Frame\x60\x01\0\0");
}

/// The peer moves to another TCP connection and does not close the old connection.
#[tokio::test]
async fn a_peer_that_keeps_its_old_connection_blocks_no_other() {
    // The time-out for the end of the old connection is longer than the test.
    let device = device_with(RnicSettings { close_timeout: Duration::from_secs(3600), ..RnicSettings::default() });
    let (_stream, mut raw, _) = connected_by(&device, settings(), 16).await;
    let before = raw.tcp.peer_addr().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = other.local_addr().unwrap().port().to_be_bytes();
    let suspend = raw.build(SUSP_COMM, &[0, 0, 0, 0, port[0], port[1], 0, 1]);
    raw.write(&suspend).await;
    assert_eq!(raw.message().await.mid, SUSP_COMM_ACK);
    let accepted = tokio::time::timeout(Duration::from_secs(20), other.accept()).await;
    let (tcp, from) = accepted.expect("a connection in time").unwrap();
    assert_eq!(from.ip(), before.ip());
    let hello = Raw::new(tcp).octets(32).await;
    assert_eq!((hello[3], hello[4..8].to_vec()), (0, vec![0, 0, 0, 32]));
}

/// A program can bind its socket before it connects. SDP connects from the bound address.
#[tokio::test]
async fn a_connection_comes_from_the_bound_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let source: SocketAddr = "127.0.0.9:0".parse().unwrap();
    let (device, settings) = (device(), SdpSettings { source: Some(source), ..settings() });
    tokio::select! {
        connected = SdpStream::connect(&device, address, settings) => panic!("{:?}", connected.map(drop)),
        accepted = listener.accept() => assert_eq!(accepted.unwrap().1.ip(), source.ip()),
    }
    let nowhere = SdpSettings { source: Some("192.0.2.1:0".parse().unwrap()), ..settings };
    let error = SdpStream::connect(&device, address, nowhere).await.unwrap_err();
    assert!(matches!(error, SdpError::Io(ErrorKind::AddrNotAvailable, _)), "{error}");
}

#[tokio::test]
async fn the_error_names_why_a_connection_ended() {
    for (terminates, words) in
        [(true, "the peer sent a Terminate: "), (false, "the peer ended TCP (FIN) without a DisConn")]
    {
        let (mut stream, mut raw, _) = connected(settings(), 16).await;
        if terminates {
            raw.write(&terminate()).await;
        }
        raw.tcp.shutdown().await.unwrap();
        let error = stream.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(stream.ended().await.unwrap_err().to_string().contains(words));
    }
}
