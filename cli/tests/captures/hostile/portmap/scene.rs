//! Lists the scenes of the port mapper. A scene is an exchange between a client and a server. For
//! each requirement that a side can violate, there is a scene that shows the violation.

use weft_peer::Deviations;

use super::net::{Fate, Net, Run, Way};

/// The first AssocHandle of the client.
const HANDLE: u64 = 0x1122_3344_5566_7788;
/// A time in milliseconds. It is longer than the time that a client waits for an answer, and longer
/// than the time that a server waits for a PMAck.
const LONG: u64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    Mapped,
    MappedV6,
    Denied,
    DeniedWithPort,
    /// No answer arrives.
    Silent,
    RequestLost,
    AcceptLost,
    /// The PMAck for a new port is lost. After the server's time limit for the PMAck, a request for
    /// another connection gets this port.
    AckLost,
    /// The client opens two connections. PmTime is 0.
    Twice,
    /// The client opens two connections, two seconds apart. PmTime is 1 s.
    TwiceLater,
    /// The client opens two connections to a service. The PMDeny has a PmTime.
    DeniedTwice,
    /// The client requests two more connections while one is open.
    Parallel,
    /// The client sends two requests at the same time. The first datagram of each request is lost.
    ParallelLost,
    /// The client uses the same port for connections to one service and then to another.
    OneAfterTheOther,
    AcceptTwice,
    DenyAfterAccept,
    AcceptUnrequested,
    AckUnrequested,
    /// The client's host restarts, and requests the same connection.
    Restarted,
    /// The PMAccept is lost, and the service disappears before the client repeats its PMReq.
    ServiceGone,
    /// A duplicate of a PMReq arrives after the server has removed the PMReq from its table.
    RequestLate,
    /// A duplicate of a PMReq arrives while the PMReq is still in the server's table.
    RequestAgain,
    /// There is no listener at the SDP Address.
    Reset,
    RequestOdd,
    RequestPadded,
    RequestReserved,
    RequestTimed,
    AckTimed,
    AcceptOdd,
    AcceptPadded,
}

fn passes(_: usize, _: usize, _: &mut Vec<u8>) -> Fate {
    Fate::Passes
}

/// Drops the datagram whose side and number are `lost`.
fn loses(side: usize, number: usize, lost: (usize, usize)) -> Fate {
    if (side, number) == lost { Fate::Lost } else { Fate::Passes }
}

/// Changes the bytes at `places` of each message whose first byte is `first`.
fn changes(octets: &mut [u8], first: u8, places: &[usize]) -> Fate {
    if octets[0] == first {
        for place in places {
            if let Some(octet) = octets.get_mut(*place) {
                *octet = 0x5a;
            }
        }
    }
    Fate::Passes
}

impl Scene {
    pub(crate) const ALL: &[Scene] = &[
        Scene::Mapped,
        Scene::MappedV6,
        Scene::Denied,
        Scene::DeniedWithPort,
        Scene::Silent,
        Scene::RequestLost,
        Scene::AcceptLost,
        Scene::AckLost,
        Scene::Twice,
        Scene::TwiceLater,
        Scene::DeniedTwice,
        Scene::Parallel,
        Scene::ParallelLost,
        Scene::OneAfterTheOther,
        Scene::AcceptTwice,
        Scene::DenyAfterAccept,
        Scene::AcceptUnrequested,
        Scene::AckUnrequested,
        Scene::Restarted,
        Scene::ServiceGone,
        Scene::RequestLate,
        Scene::RequestAgain,
        Scene::Reset,
        Scene::RequestOdd,
        Scene::RequestPadded,
        Scene::RequestReserved,
        Scene::RequestTimed,
        Scene::AckTimed,
        Scene::AcceptOdd,
        Scene::AcceptPadded,
    ];

    /// Returns whether the scene has datagrams that no correct side sends.
    pub(crate) fn is_tampered_with(self) -> bool {
        use Scene::{
            AcceptOdd, AcceptPadded, AckTimed, AckUnrequested, DeniedTwice, RequestOdd, RequestPadded, RequestReserved,
            RequestTimed,
        };
        let tampered =
            [AcceptOdd, AcceptPadded, AckTimed, AckUnrequested, DeniedTwice, RequestOdd, RequestPadded, RequestTimed];
        tampered.contains(&self) || self == RequestReserved
    }

    fn way(self) -> Way {
        match self {
            Scene::Silent => |side, _, _| if side == 1 { Fate::Lost } else { Fate::Passes },
            Scene::RequestLost => |side, number, _| loses(side, number, (0, 1)),
            Scene::ParallelLost => |side, number, _| if side == 0 && number <= 2 { Fate::Lost } else { Fate::Passes },
            Scene::AcceptLost | Scene::ServiceGone | Scene::Restarted => |side, number, _| loses(side, number, (1, 1)),
            Scene::AckLost => |side, _, octets| {
                if side == 0 && octets[0] & 0x30 == 0x20 { Fate::Lost } else { Fate::Passes }
            },
            Scene::RequestAgain | Scene::RequestLate => |side, _, _| if side == 1 { Fate::Lost } else { Fate::Passes },
            Scene::DeniedTwice => |_, _, octets| changes(octets, 0x34, &[1]),
            Scene::RequestOdd => |_, _, octets| changes(octets, 0x04, &[2, 3]),
            Scene::RequestPadded => |_, _, octets| changes(octets, 0x04, &[20, 47]),
            Scene::RequestReserved => |side, _, octets| {
                octets[0] |= u8::from(side == 0 && octets[0] & 0x30 == 0);
                Fate::Passes
            },
            Scene::RequestTimed => |_, _, octets| changes(octets, 0x04, &[1]),
            Scene::AckTimed => |_, _, octets| changes(octets, 0x24, &[1]),
            Scene::AcceptOdd => |_, _, octets| changes(octets, 0x14, &[2, 3]),
            Scene::AcceptPadded => |_, _, octets| changes(octets, 0x14, &[20, 47]),
            _ => passes,
        }
    }

    /// Runs the scene with these deviations of the client and of the server.
    pub(crate) fn play(self, deviations: [&Deviations; 2]) -> Run {
        let pm_time = if self == Scene::TwiceLater { 4 } else { 0 };
        let mut net = Net::new(self == Scene::MappedV6, pm_time, self == Scene::DeniedWithPort, self.way(), deviations);
        match self {
            Scene::Denied | Scene::DeniedWithPort => net.ask(5009, 40001),
            Scene::Reset => net.ask(5003, 40001),
            Scene::DeniedTwice => {
                net.ask(5009, 40001);
                net.wait(1000);
                net.ask(5009, 40002);
            }
            Scene::Twice | Scene::TwiceLater => {
                net.ask(5001, 40001);
                net.wait(if self == Scene::Twice { 100 } else { 2000 });
                net.ask(5001, 40002);
            }
            // The client repeats a PMReq for which the server assigns a new port.
            Scene::AcceptLost => {
                net.ask(5002, 40001);
                net.wait(1000);
                net.ask(5002, 40002);
            }
            Scene::AckLost => {
                // The client's host is unreachable, so its TCP connection also fails. The test
                // sends the requests in its place.
                net.inject(0, &net.message(0x04, 5002, 40001, HANDLE));
                net.inject(0, &net.message(0x04, 5002, 40002, HANDLE + 1));
                net.wait(LONG);
                net.inject(0, &net.message(0x04, 5002, 40003, HANDLE + 2));
            }
            Scene::Parallel => {
                net.inject(0, &net.message(0x04, 5001, 39999, 7));
                net.ask(5001, 40001);
                net.ask(5004, 40002);
            }
            Scene::ParallelLost => {
                net.ask(5001, 40001);
                net.ask(5004, 40002);
            }
            Scene::OneAfterTheOther => {
                net.ask(5001, 40001);
                net.wait(1000);
                net.ask(5004, 40001);
            }
            Scene::AcceptTwice | Scene::DenyAfterAccept => {
                net.ask(5001, 40001);
                let (first, port) = if self == Scene::AcceptTwice { (0x14, 7001) } else { (0x34, 0) };
                net.inject(1, &net.message(first, port, 40001, HANDLE));
            }
            Scene::AcceptUnrequested => net.inject(1, &net.message(0x14, 7001, 40001, HANDLE)),
            Scene::AckUnrequested => net.inject(0, &net.message(0x24, 7001, 40001, HANDLE)),
            Scene::Restarted => {
                net.ask(5001, 40001);
                net.restart();
                net.ask(5001, 40001);
            }
            Scene::ServiceGone => {
                net.ask(5001, 40001);
                let service = net.service(5001);
                net.server.table().set_available(service, false);
            }
            Scene::RequestLate | Scene::RequestAgain => {
                let request = net.message(0x04, 5002, 40001, HANDLE);
                net.inject(0, &request);
                net.wait(if self == Scene::RequestLate { LONG } else { 9000 });
                net.inject(0, &request);
            }
            _ => net.ask(5001, 40001),
        }
        net.wait(LONG);
        net.end_run()
    }
}
