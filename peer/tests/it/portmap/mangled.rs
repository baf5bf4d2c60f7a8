//! Tests PM Client and PM Server with a simulated network between them. The network loses, repeats
//! and reorders datagrams at random, from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use weft_core::requirement;
use weft_peer::Instant;
use weft_peer::portmap::{Client, ClientSettings, Fallback, Query, Resolution, Resolved, Server, ServerEvent};

use crate::portmap::octets::{asker, at, fixed, made, mapper, millis, proves, table};

const QUESTIONS: u16 = 12;
const SEEDS: u64 = 500;

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// How many of a hundred datagrams are lost, are sent twice, or arrive up to two seconds late.
#[derive(Debug, Clone, Copy)]
struct Mangling {
    lost: u64,
    twice: u64,
    late: u64,
}

struct Net {
    random: Random,
    mangling: Mangling,
    client: Client,
    server: Server,
    /// The datagrams in flight, by time of arrival and order. The first part of a value is `true`
    /// if the datagram goes to the server. The second part is the octets.
    on_way: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    order: u64,
    resolved: Vec<Resolved>,
    offered: BTreeSet<(SocketAddr, SocketAddr)>,
}

impl Net {
    fn new(seed: u64, mangling: Mangling) -> Self {
        let mappings = [fixed("10.0.0.1:5001", &["10.0.0.1:7001", "10.0.0.2:7001"], 0), {
            let mut made = made("10.0.0.1:6001");
            made.target =
                weft_peer::portmap::Target::PortRange { at: at("10.0.0.1:0"), ports: 9000..=9000 + QUESTIONS };
            made
        }];
        let settings = ClientSettings { repeats: 12, ..ClientSettings::default() };
        Net {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            mangling,
            client: Client::new(settings, seed),
            server: Server::new(Default::default(), table(mappings)),
            on_way: BTreeMap::new(),
            order: 0,
            resolved: Vec::new(),
            offered: BTreeSet::new(),
        }
    }

    fn put(&mut self, now: Instant, to_server: bool, octets: &[u8]) {
        if self.random.below(100) < self.mangling.lost {
            return;
        }
        let copies = 1 + u64::from(self.random.below(100) < self.mangling.twice);
        for _ in 0..copies {
            let late = self.random.below(100) < self.mangling.late;
            let delay = 1 + if late { self.random.below(2000) } else { self.random.below(5) };
            self.order += 1;
            self.on_way.insert((now + Duration::from_millis(delay), self.order), (to_server, octets.to_vec()));
        }
    }

    fn drain(&mut self, now: Instant) {
        while let Some(datagram) = self.client.poll_datagram() {
            assert_eq!(datagram.to, mapper());
            self.put(now, true, &datagram.octets);
        }
        while let Some(datagram) = self.server.poll_datagram() {
            assert_eq!(datagram.to, asker());
            self.put(now, false, &datagram.octets);
        }
        self.resolved.extend(std::iter::from_fn(|| self.client.poll_event()));
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Accepted { connecting, address, .. } = event {
                self.offered.insert((connecting, address));
            }
        }
    }

    fn run(&mut self) -> Instant {
        let mut now = Instant::ORIGIN;
        for number in 0..QUESTIONS {
            let service = at(["10.0.0.1:5001", "10.0.0.1:6001", "10.0.0.1:5009"][usize::from(number % 3)]);
            let connecting = SocketAddr::new(asker().ip(), 40_000 + number);
            self.client.query(now, Query { mapper: mapper(), service, connecting }).unwrap();
        }
        self.drain(now);
        for _ in 0..100_000 {
            let next = [self.on_way.keys().next().map(|(at, _)| *at), self.client.deadline(), self.server.deadline()];
            let Some(next) = next.into_iter().flatten().min() else { return now };
            now = now.max(next);
            if let Some(entry) = self.on_way.first_entry().filter(|entry| entry.key().0 <= now) {
                let (to_server, octets) = entry.remove();
                if to_server {
                    self.server.handle_datagram(now, asker(), &octets);
                } else {
                    self.client.handle_datagram(now, mapper(), &octets);
                }
            }
            self.client.handle_timeout(now);
            self.server.handle_timeout(now);
            self.drain(now);
        }
        panic!("the exchange does not end");
    }
}

#[test]
fn both_agree_whatever_is_lost_repeated_or_late() {
    let mut ends = BTreeMap::<&str, usize>::new();
    for seed in 1..=SEEDS {
        let mangling = Mangling { lost: seed % 50, twice: seed % 7 * 10, late: seed % 5 * 20 };
        let mut net = Net::new(seed, mangling);
        net.run();
        let context = || format!("seed {seed}, {mangling:?}");
        assert_eq!(net.resolved.len(), usize::from(QUESTIONS), "{}", context());
        for resolved in &net.resolved {
            let ask = resolved.query;
            *ends
                .entry(match resolved.resolution {
                    Resolution::Sdp { address, .. } => {
                        assert!(
                            net.offered.contains(&(ask.connecting, address)),
                            "{}: nobody gave {address}",
                            context()
                        );
                        assert_ne!(ask.service.port(), 5009, "{}", context());
                        "SDP"
                    }
                    Resolution::Conventional { address, why } => {
                        assert_eq!(address, ask.service, "{}", context());
                        assert!(ask.service.port() == 5009 || why == Fallback::Silent, "{}", context());
                        if why == Fallback::Denied { "denied" } else { "silent" }
                    }
                })
                .or_default() += 1;
        }
        // No state is left in the client or the server.
        assert_eq!((net.client.open(), net.server.stored_requests()), (0, 0), "{}", context());
        let free = (0..=QUESTIONS).filter(|number| {
            let connecting = SocketAddr::new(asker().ip(), 50_000 + number);
            let ask = Query { mapper: mapper(), service: at("10.0.0.1:6001"), connecting };
            let transaction = net.client.query(millis(10_000_000), ask).unwrap();
            let request = net.client.poll_datagram().unwrap().octets;
            net.client.cancel(transaction);
            net.server.handle_datagram(millis(10_000_000), asker(), &request);
            net.server.poll_datagram().unwrap().octets[0] == 0x14
        });
        assert_eq!(free.count(), usize::from(QUESTIONS) + 1, "{}: every port came back", context());
    }
    println!("{SEEDS} seeds of {QUESTIONS} questions: {ends:?}");
    let of = |end| ends.get(end).copied().unwrap_or_default();
    proves([
        (requirement!("PM-7.2-1"), &|| assert!(of("SDP") > 3000 && of("denied") > 1500, "{ends:?}")),
        (requirement!("PM-7.2-2"), &|| assert!(of("silent") < 100, "{ends:?}")),
    ]);
}

/// No server exists, so all requests are lost.
#[test]
fn a_dead_port_mapper_leads_to_plain_tcp() {
    let mut net = Net::new(1, Mangling { lost: 100, twice: 0, late: 0 });
    let end = net.run();
    let plain = |resolved: &Resolved| {
        resolved.resolution == Resolution::Conventional { address: resolved.query.service, why: Fallback::Silent }
    };
    assert_eq!(net.resolved.iter().filter(|resolved| plain(resolved)).count(), usize::from(QUESTIONS));
    // The client waits 0.5 s, 1 s and 2 s, and then 4 s for each of the remaining ten of thirteen
    // requests.
    assert_eq!(end, millis(43_500));
}
