//! Tests the tester in the role of a port mapper (draft-pinkerton-iwarp-sdp-01 section 7) and of a
//! service. Each exchange runs with a client in the same process. Most exchanges also run with a
//! client over UDP and TCP on the loopback interface.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::net::SocketAddr;
use std::time::Duration;

use weft_core::wire::portmap::{Addresses, Message, MessageType, PmTime};
use weft_peer::Deviations;
use weft_peer::driver::portmap::{PmClient, connect};
use weft_peer::driver::{Call, Direction, EventContent, Link, MapperSocket, Received, TesterConnection, VirtualLink};
use weft_peer::portmap::ClientSettings;

/// A target, which is the client of the port mapper.
enum Target {
    Virtual,
    Real(PmClient),
}

impl Target {
    fn open(over_udp: bool) -> (Link, Self) {
        if !over_udp {
            return (Link::Virtual(VirtualLink::with_port_mapper_client(Deviations::NONE).unwrap()), Target::Virtual);
        }
        let link = Link::Mapper(MapperSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap().link());
        (link, Target::Real(PmClient::bind(ClientSettings::default(), None).unwrap()))
    }

    /// Makes the target connect to a service.
    fn start(&self, link: &mut Link, service: SocketAddr) {
        link.query(service).unwrap();
        if let Target::Real(client) = self {
            let (client, mapper) = (client.clone(), link.mapper_address(false));
            tokio::spawn(async move {
                let mapped = connect(&client, mapper, service).await.unwrap();
                // Keep the connection until the tester closes it.
                mapped.stream.readable().await.unwrap();
            });
        }
    }
}

async fn call(link: &mut Link) -> Call {
    let deadline = link.now() + Duration::from_secs(20);
    link.next_call(deadline).await.unwrap().unwrap()
}

async fn datagram(link: &mut Link) -> (SocketAddr, Message) {
    match call(link).await {
        Call::Datagram { to, from, octets } => {
            assert_eq!((to, octets.len()), (link.mapper_address(false), 48));
            (from, Message::parse(&octets).unwrap())
        }
        Call::Connection { to, .. } => panic!("a connection to {to}"),
    }
}

async fn connection(link: &mut Link) -> (SocketAddr, TesterConnection) {
    match call(link).await {
        Call::Connection { to, connection } => (to, *connection),
        Call::Datagram { octets, .. } => panic!("{octets:?}"),
    }
}

async fn answer(link: &mut Link, (to, request): (SocketAddr, Message), kind: MessageType, place: SocketAddr) {
    let addresses = request.addresses.with_accepting(place.ip());
    let answer = Message {
        message_type: kind,
        pm_time: PmTime::ONCE,
        ap_port: place.port(),
        addresses,
        mapped: None,
        ..request
    };
    let mut octets = Vec::new();
    answer.emit(&mut octets);
    link.answer(false, to, &octets).await.unwrap();
}

/// The exchange is a PMReq, a PMAccept and a PMAck. Then a connection follows, from the address in
/// the PMReq to the address in the PMAccept.
#[tokio::test]
async fn a_client_connects_to_the_address_from_the_tester() {
    for over_udp in [false, true] {
        let (mut link, target) = Target::open(over_udp);
        let service = link.reserve_address(false, false, true).unwrap();
        let place = link.reserve_address(false, false, true).unwrap();
        target.start(&mut link, service);
        let request = datagram(&mut link).await;
        let Addresses::V4 { connecting, accepting } = request.1.addresses else { panic!("of IPv6") };
        assert_eq!((request.1.message_type, request.1.ap_port), (MessageType::PM_REQ, service.port()));
        assert_eq!(SocketAddr::from((accepting, request.1.ap_port)), service);
        let from = SocketAddr::from((connecting, request.1.cp_port));
        answer(&mut link, request, MessageType::PM_ACCEPT, place).await;
        let (_, ack) = datagram(&mut link).await;
        assert_eq!((ack.message_type, ack.ap_port), (MessageType::PM_ACK, place.port()));
        let (to, connection) = connection(&mut link).await;
        assert_eq!((to, connection.addresses()), (place, (place, from)));

        let traffic = link.traffic().events();
        let directions: Vec<Direction> = traffic.iter().map(|event| event.direction).take(4).collect();
        use Direction::{FromTarget, ToTarget};
        assert_eq!(directions, [FromTarget, ToTarget, FromTarget, FromTarget]);
        // The client is allowed to use any port. The tester's port is that of the port mapper.
        let is_from_port_mapper =
            matches!(traffic[0].content, EventContent::Datagram { tester, .. } if tester.port() == 3935);
        assert!(is_from_port_mapper, "{:?}", traffic[0]);
    }
}

/// There is no listener at the SDP Address. So the client connects to the address of the service
/// without SDP, and sends plain octets.
#[tokio::test]
async fn a_refused_client_connects_to_the_service() {
    for over_udp in [false, true] {
        let (mut link, target) = Target::open(over_udp);
        let service = link.reserve_address(false, false, true).unwrap();
        let nowhere = link.reserve_address(false, false, false).unwrap();
        target.start(&mut link, service);
        let request = datagram(&mut link).await;
        answer(&mut link, request, MessageType::PM_ACCEPT, nowhere).await;
        assert_eq!(datagram(&mut link).await.1.message_type, MessageType::PM_ACK);
        let (to, mut connection) = connection(&mut link).await;
        assert_eq!(to, service);
        if !over_udp {
            let deadline = link.now() + Duration::from_secs(1);
            let Received::Octets(words) = connection.receive(deadline).await.unwrap() else { panic!("no words") };
            assert_eq!(&words[..], b"plain words\n");
            connection.finish().await.unwrap();
            assert_eq!(connection.receive(deadline).await.unwrap(), Received::Fin);
        }
    }
}

/// If the client gets no answer, it sends five requests and then connects to the service without
/// SDP. The client of this test is in the same process.
#[tokio::test]
async fn a_client_without_an_answer_gives_up() {
    let (mut link, target) = Target::open(false);
    let service = link.reserve_address(true, false, true).unwrap();
    target.start(&mut link, service);
    let mut requests = 0;
    let to = loop {
        match call(&mut link).await {
            Call::Datagram { to, octets, .. } => {
                assert_eq!((to, octets[0]), (link.mapper_address(true), 0x06));
                requests += 1;
            }
            Call::Connection { to, .. } => break to,
        }
    };
    assert_eq!((requests, to), (5, service));
}
