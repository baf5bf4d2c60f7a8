//! Tests connections that the connection manager opens between two RNICs over real TCP. The tests
//! transfer data over these connections with every kind of operation.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use weft_peer::driver::Device;
use weft_peer::driver::cm::{CmError, CmSettings, Connected, Listener};
use weft_peer::memory::{Access, Buffer, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use weft_peer::mpa::{EnhancedUse, Model, MpaSettings, PrivateData};
use weft_peer::verbs::{
    CompletionStatus, CqError, CqHandle, Node, Operation, Payload, QpHandle, QpInit, QpState, ReceiveOverflow,
    ReceiveWr, RemoteAddress, RnicSettings, SendWr, Sge,
};

const LENGTH: u32 = 16 << 20;
/// Ends a test that would wait forever.
pub(crate) const LONG: Duration = Duration::from_secs(60);

struct Side {
    device: Device,
    cq: CqHandle,
    qp: QpHandle,
    buffer: Buffer,
    stag: Stag,
}

fn side() -> Side {
    side_with(ReceiveOverflow::Terminate)
}

fn side_with(overflow: ReceiveOverflow) -> Side {
    let (mut rnic, privileged) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
    let pd = rnic.memory_mut().allocate_pd().unwrap();
    let cq = rnic.create_cq(64, None).unwrap().0;
    let qp = rnic.create_qp(QpInit { overflow, ..QpInit::new(pd, cq, cq) }, Some(&privileged)).unwrap().0;
    let buffer = rnic.memory_mut().allocate_buffer(LENGTH as usize).unwrap();
    let list = PhysicalBufferList::of(buffer, 0, u64::from(LENGTH), 4096);
    let base = ToBase::ZeroBased;
    let registration = Registration { pd, key: StagKey(5), list, base, remote: true, access: Access::ALL };
    let stag = rnic.memory_mut().register(&registration).unwrap().stag;
    Side { device: Device::new(rnic), cq, qp, buffer, stag }
}

impl Side {
    fn sge(&self) -> Sge {
        Sge { stag: self.stag.to_bits(), tagged_offset: 0, length: LENGTH }
    }

    fn remote(&self) -> RemoteAddress {
        RemoteAddress { stag: self.stag.to_bits(), tagged_offset: 0 }
    }

    fn fill(&self, seed: u8) -> Vec<u8> {
        let octets: Vec<u8> = (0..LENGTH).map(|n| (n >> 8) as u8 ^ n as u8 ^ seed).collect();
        self.device.verbs(|rnic| rnic.memory_mut().buffer_mut(self.buffer).unwrap().copy_from_slice(&octets));
        octets
    }

    fn holds(&self, octets: &[u8]) -> bool {
        self.device.verbs(|rnic| rnic.memory().buffer(self.buffer).unwrap() == octets)
    }

    fn post(&self, operation: Operation) {
        self.device.post_send(self.qp, vec![SendWr::new(1, operation)]).unwrap();
    }

    fn post_receive(&self) {
        let wr = ReceiveWr { wr_id: 2, scatter: vec![self.sge()] };
        self.device.post_receive(self.qp, vec![wr]).unwrap();
    }

    async fn done(&self) -> CompletionStatus {
        self.device.completion(self.cq).await.unwrap().status
    }
}

fn data(octets: &'static [u8]) -> PrivateData {
    PrivateData::new(octets).unwrap()
}

/// Connects two sides. Returns the connecting side and the listening side. Also returns the data
/// that each side got about its peer, in the same order.
async fn connect(address: &str, settings: CmSettings) -> (Side, Side, Connected, Connected) {
    let (a, b) = (side(), side());
    b.post_receive();
    connect_these(a, b, address, settings).await
}

async fn connect_these(a: Side, b: Side, address: &str, settings: CmSettings) -> (Side, Side, Connected, Connected) {
    let address: SocketAddr = address.parse().unwrap();
    let listener = Listener::bind(&b.device, address, settings).unwrap();
    let there = listener.local_addr();
    let (from_a, from_b) = (data(b"from a"), data(b"from b"));
    let accepting = async { listener.next().await.unwrap().accept(b.qp, &from_b).unwrap() };
    let (connected, accepted) = tokio::join!(a.device.connect(a.qp, there, settings, &from_a), accepting);
    (a, b, connected.unwrap(), accepted)
}

async fn transfers(address: &str, mpa: MpaSettings) {
    let (a, b, connected, accepted) = connect(address, CmSettings { mpa, ..CmSettings::default() }).await;
    assert_eq!(connected.peer.private_data.as_octets(), b"from b");
    assert_eq!(accepted.peer.private_data.as_octets(), b"from a");
    let octets = a.fill(1);
    let payload = || Payload::Gather(vec![a.sge()]);
    a.post(Operation::Send { payload: payload(), solicited: false, invalidate: None });
    assert_eq!((a.done().await, b.done().await), (CompletionStatus::Success, CompletionStatus::Success));
    assert!(b.holds(&octets));
    b.fill(2);
    let (local, remote) = (b.sge(), a.remote());
    b.post(Operation::Read { local, remote, invalidate_local: false });
    assert_eq!(b.done().await, CompletionStatus::Success);
    assert!(b.holds(&octets));
    let octets = a.fill(3);
    a.post(Operation::Write { payload: payload(), remote: b.remote() });
    let (local, remote) = (Sge { length: 0, ..a.sge() }, b.remote());
    a.post(Operation::Read { local, remote, invalidate_local: false });
    assert_eq!((a.done().await, a.done().await), (CompletionStatus::Success, CompletionStatus::Success));
    assert!(b.holds(&octets), "the Read after the Write shows that the data was placed");
    assert_eq!(a.device.disconnect(a.qp).await, Ok(()));
    b.device.state_is(b.qp, QpState::Idle).await.unwrap();
    assert_eq!(a.device.verbs(|rnic| rnic.query_qp(a.qp).unwrap().state), QpState::Idle);
}

#[tokio::test]
async fn ipv4_with_crc() {
    transfers("127.0.0.1:0", MpaSettings::default()).await;
}

#[tokio::test]
async fn ipv6_with_markers_and_the_enhanced_set_up() {
    let mpa = MpaSettings { markers: true, enhanced: EnhancedUse::Request, ..MpaSettings::default() };
    transfers("[::1]:0", mpa).await;
}

#[tokio::test]
async fn a_rejection_brings_private_data() {
    let (a, b) = (side(), side());
    let listener = Listener::bind(&b.device, "127.0.0.1:0".parse().unwrap(), CmSettings::default()).unwrap();
    let there = listener.local_addr();
    let (none, busy) = (PrivateData::default(), data(b"busy"));
    let rejecting = async { listener.next().await.unwrap().reject(&busy).await.unwrap() };
    let (connected, ()) = tokio::join!(a.device.connect(a.qp, there, CmSettings::default(), &none), rejecting);
    let Err(CmError::Rejected(peer)) = connected else { panic!("{connected:?}") };
    assert_eq!(peer.private_data.as_octets(), b"busy");
    assert_eq!(a.device.verbs(|rnic| rnic.query_qp(a.qp).unwrap().state), QpState::Idle);
}

/// draft-hilland-rddp-verbs, section 13.2: the side reads nothing from TCP while a message waits
/// for a receive. PostRQ (the verb that posts a receive) resumes reading.
#[tokio::test]
async fn a_message_waits_in_tcp_for_its_receive() {
    let (a, b) = (side(), side_with(ReceiveOverflow::Wait));
    let (a, b, ..) = connect_these(a, b, "127.0.0.1:0", CmSettings::default()).await;
    let octets = a.fill(4);
    a.post(Operation::Send { payload: Payload::Gather(vec![a.sge()]), solicited: false, invalidate: None });
    let waits = || b.device.verbs(|rnic| rnic.query_qp(b.qp).unwrap().llp.is_some_and(|llp| !rnic.wants_octets(llp)));
    let stops = async {
        while !waits() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, stops).await.unwrap();
    b.post_receive();
    assert_eq!((a.done().await, b.done().await), (CompletionStatus::Success, CompletionStatus::Success));
    assert!(b.holds(&octets));
}

#[tokio::test]
async fn an_abort_reaches_the_peer() {
    let (a, b, ..) = connect("127.0.0.1:0", CmSettings::default()).await;
    a.device.modify_qp(a.qp, &weft_peer::verbs::QpModify::to(QpState::Error)).unwrap();
    b.device.state_is(b.qp, QpState::Error).await.unwrap();
    assert_eq!(b.done().await, CompletionStatus::Flushed);
}

/// RFC 6581: the Queue Pairs get the depths (IRD and ORD) on which the two sides agree.
#[tokio::test]
async fn queue_pairs_get_the_agreed_depths() {
    let mut mpa = MpaSettings { enhanced: EnhancedUse::Request, ..MpaSettings::default() };
    mpa.enhanced_settings.ird = weft_peer::mpa::Depth::negotiated(7);
    mpa.enhanced_settings.ord = weft_peer::mpa::Depth::negotiated(3);
    let (a, b, connected, accepted) = connect("127.0.0.1:0", CmSettings { mpa, ..CmSettings::default() }).await;
    for (side, seen) in [(&a, connected), (&b, accepted)] {
        let agreed = seen.negotiated.enhanced.unwrap();
        let init = side.device.verbs(|rnic| rnic.query_qp(side.qp).unwrap().init);
        assert_eq!((init.ird, init.ord), (u32::from(agreed.ird), u32::from(agreed.ord)));
        assert!(init.ord <= 7);
    }
}

/// P2P-9.1-21: a Responder rejects a peer that supports fewer Reads than the Responder needs. The
/// Reply carries the number that the Responder needs.
#[tokio::test]
async fn a_peer_with_too_low_an_ird_is_rejected() {
    let (a, b) = (side(), side());
    let asks = |ird| {
        let mut mpa = MpaSettings { enhanced: EnhancedUse::Request, ..MpaSettings::default() };
        mpa.enhanced_settings.ird = weft_peer::mpa::Depth::negotiated(ird);
        CmSettings { mpa, ..CmSettings::default() }
    };
    let mut needs = asks(8);
    needs.mpa.enhanced_settings.min_ord = 5;
    let listener = Listener::bind(&b.device, "127.0.0.1:0".parse().unwrap(), needs).unwrap();
    let (there, none) = (listener.local_addr(), PrivateData::default());
    let (refused, reported) = tokio::join!(a.device.connect(a.qp, there, asks(4), &none), listener.next());
    assert!(matches!(reported, Err(CmError::PeerIrd)), "{reported:?}");
    let Err(CmError::Rejected(peer)) = refused else { panic!("{refused:?}") };
    assert_eq!(peer.enhanced.unwrap().ord, 5);
    b.post_receive();
    let accepting = async { listener.next().await.unwrap().accept(b.qp, &none).unwrap() };
    let (connected, accepted) = tokio::join!(a.device.connect(a.qp, there, asks(5), &none), accepting);
    assert!(connected.is_ok(), "{connected:?}");
    assert!(accepted.negotiated.enhanced.unwrap().ord >= 5);
}

#[tokio::test]
async fn waiting_for_a_completion_ends_if_the_queue_is_destroyed() {
    let Side { device, .. } = side();
    let cq = device.create_cq(1).unwrap();
    let gone = async { device.destroy_cq(cq).unwrap() };
    let (completion, ()) = tokio::join!(device.completion(cq), gone);
    assert_eq!(completion.unwrap_err(), CqError::InvalidCqHandle);
}

/// The first octets of a Request of revision 2, and of a Request of revision 1: the key, the flags,
/// the revision (RFC 5044 section 7.1.1, RFC 6581 section 6). The flag C is set in both Requests,
/// and the flag S only in revision 2.
const REVISION_2: &[u8] = b"MPA ID Req Frame\x50\x02";
const REVISION_1: &[u8] = b"MPA ID Req Frame\x40\x01";

fn asks_and_falls_back() -> CmSettings {
    let mpa = MpaSettings { enhanced: EnhancedUse::Request, ..MpaSettings::default() };
    CmSettings { mpa, fall_back: true, ..CmSettings::default() }
}

/// A Request's first 18 octets.
async fn request(tcp: &mut tokio::net::TcpStream) -> [u8; 18] {
    let mut octets = [0; 18];
    tcp.read_exact(&mut octets).await.unwrap();
    octets
}

/// RFC 6581 section 10, "Enhanced MPA initiator only": the Responder closes. The Initiator connects
/// again with revision 1 if its application allows this.
#[tokio::test]
async fn connects_again_to_a_responder_of_revision_1() {
    let (a, b) = (side(), side());
    let old = CmSettings {
        mpa: MpaSettings { enhanced: EnhancedUse::Off, ..MpaSettings::default() },
        ..CmSettings::default()
    };
    let listener = Listener::bind(&b.device, "127.0.0.1:0".parse().unwrap(), old).unwrap();
    let (there, none) = (listener.local_addr(), PrivateData::default());
    let settings = asks_and_falls_back();
    let alone = CmSettings { fall_back: false, ..settings };
    let refused = a.device.connect(a.qp, there, alone, &none).await;
    assert!(matches!(refused, Err(CmError::Closed)), "{refused:?}");
    assert!(listener.next().await.is_err());
    b.post_receive();
    let accepting = async {
        assert!(listener.next().await.is_err(), "the enhanced Request");
        listener.next().await.unwrap().accept(b.qp, &none).unwrap()
    };
    let (connected, accepted) = tokio::join!(a.device.connect(a.qp, there, settings, &none), accepting);
    let (connected, accepted) = (connected.unwrap().negotiated, accepted.negotiated);
    assert_eq!((connected.peer_revision, connected.enhanced), (1, None));
    assert_eq!((accepted.peer_revision, accepted.enhanced), (1, None));
    let octets = a.fill(6);
    a.post(Operation::Send { payload: Payload::Gather(vec![a.sge()]), solicited: false, invalidate: None });
    assert_eq!((a.done().await, b.done().await), (CompletionStatus::Success, CompletionStatus::Success));
    assert!(b.holds(&octets));
}

/// The Initiator also connects again if the Responder resets the first connection or does not
/// answer. There is no third attempt.
#[tokio::test]
async fn falls_back_after_a_reset_and_after_silence() {
    for silent in [false, true] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (there, none) = (listener.local_addr().unwrap(), PrivateData::default());
        let answering = async {
            let (mut first, _) = listener.accept().await.unwrap();
            assert_eq!(request(&mut first).await, REVISION_2);
            if !silent {
                first.set_zero_linger().unwrap();
                drop(first);
                return listener.accept().await.unwrap().0;
            }
            let (second, _) = listener.accept().await.unwrap();
            assert_eq!(first.read_to_end(&mut Vec::new()).await.unwrap(), 6, "the rest of the Request, and the end");
            second
        };
        let a = side();
        let timeout = if silent { core::time::Duration::from_millis(300) } else { core::time::Duration::from_secs(10) };
        let settings = CmSettings { startup_timeout: timeout, ..asks_and_falls_back() };
        let answering = async {
            let mut second = answering.await;
            assert_eq!(request(&mut second).await, REVISION_1);
        };
        let (connected, ()) = tokio::join!(a.device.connect(a.qp, there, settings, &none), answering);
        assert!(connected.is_err(), "{connected:?}");
        assert_eq!(a.device.verbs(|rnic| rnic.query_qp(a.qp).unwrap().state), QpState::Idle);
    }
}

/// The peer-to-peer model needs a feature that revision 1 lacks, so the Initiator makes no second
/// attempt. The Initiator also makes no second attempt after a rejecting Reply.
#[tokio::test]
async fn no_fallback_if_revision_1_is_not_sufficient() {
    let (a, b) = (side(), side());
    let mut settings = asks_and_falls_back();
    settings.mpa.enhanced_settings.model = Model::PeerToPeer;
    let old = CmSettings {
        mpa: MpaSettings { enhanced: EnhancedUse::Off, ..MpaSettings::default() },
        ..CmSettings::default()
    };
    let listener = Listener::bind(&b.device, "127.0.0.1:0".parse().unwrap(), old).unwrap();
    let none = PrivateData::default();
    let refused = a.device.connect(a.qp, listener.local_addr(), settings, &none).await;
    assert!(matches!(refused, Err(CmError::Closed)), "{refused:?}");

    let listener = Listener::bind(&b.device, "127.0.0.1:0".parse().unwrap(), CmSettings::default()).unwrap();
    let there = listener.local_addr();
    let rejecting = async { listener.next().await.unwrap().reject(&none).await.unwrap() };
    let (connected, ()) = tokio::join!(a.device.connect(a.qp, there, asks_and_falls_back(), &none), rejecting);
    assert!(matches!(connected, Err(CmError::Rejected(_))), "{connected:?}");
}
