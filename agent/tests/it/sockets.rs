//! Tests the software RNIC on this host's TCP. In some tests, two agents communicate with each
//! other. In the others, a tester and some peers use one agent.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic in a helper function fails the test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use weft_agent::Limits;

use crate::talk::{Talk, WITHIN};

/// Returns an MPA Request of revision 1 with CRC and `private_data`.
fn request(private_data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(private_data.len()).unwrap().to_be_bytes();
    [b"MPA ID Req Frame\x40\x01", &length[..], private_data].concat()
}

fn peer(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    stream
}

#[test]
fn two_agents_connect_and_report_every_event() {
    let (mut one, mut other) = (Talk::new(Limits::default()), Talk::new(Limits::default()));
    let listener = one.done(&json!({"listen": {"address": "127.0.0.1", "port": 0}}));
    let port = listener["listener"]["port"].as_u64().unwrap();
    let [domain, far] = [&mut one, &mut other].map(|it| it.number("domain", &json!("domain")));
    let access = ["local_write", "remote_write", "remote_read"];
    let region = one.done(&json!({"register": {"domain": domain, "octets": 4096, "access": access}}))["region"].clone();
    let theirs = other.number("region", &json!({"register": {"domain": far, "octets": 4096, "access": access}}));
    other.done(&json!({"fill": {"region": theirs, "length": 4096, "seed": 7}}));
    let way = other.number("connection", &json!({"resolve": {"address": "127.0.0.1", "port": port}}));
    other.done(&json!({"pair": {"connection": way, "domain": far}}));
    other.done(&json!({"connect": {"connection": way, "private_data": "686f", "ird": 4, "ord": 4}}));
    let request = one.event("request");
    assert_eq!(request["private_data"], "686f");
    assert_eq!(request["listener"], listener["listener"]["listener"]);
    let end = request["connection"].as_u64().unwrap();
    one.done(&json!({"pair": {"connection": end, "domain": domain}}));
    one.done(&json!({"post_receive": {"on": end, "work": 1, "parts": [{"region": region["region"], "length": 16}]}}));
    // The device rejects this `accept`. The peer's request still waits for an answer.
    assert!(one.failed(&json!({"accept": {"connection": end, "ird": 255}})).contains("IRD"), "accept");
    one.done(&json!({"accept": {"connection": end, "private_data": "6f6b", "ird": 4, "ord": 4}}));
    assert_eq!(one.event("established")["connection"], end);
    assert_eq!(other.event("established")["private_data"], "6f6b");
    let part = |offset, length| json!([{"region": theirs, "offset": offset, "length": length}]);
    let write = json!({"write": {"address": region["address"], "key": region["remote_key"]}});
    other.done(&json!({"post_send": {"connection": way, "work": 2, "operation": write, "parts": part(0, 4096)}}));
    other.done(&json!({"post_send": {"connection": way, "work": 3, "operation": {"send": {}}, "parts": part(5, 16)}}));
    for work in [2, 3] {
        let done = other.event("completion");
        assert_eq!((&done["work"], &done["status"]), (&json!(work), &json!("success")));
    }
    assert_eq!(one.event("completion")["octets"], 16);
    let (mine, yours) = (
        one.done(&json!({"hash": {"region": region["region"], "offset": 16, "length": 4080}})),
        other.done(&json!({"hash": {"region": theirs, "offset": 16, "length": 4080}})),
    );
    assert_eq!(mine, yours);
    other.done(&json!({"disconnect": {"connection": way}}));
    assert_eq!(other.event("disconnected")["connection"], way);
    assert_eq!(one.event("disconnected")["connection"], end);
    // The connection has ended, but its object exists until a request destroys the object.
    one.done(&json!({"destroy": {"object": end}}));
    assert!(one.failed(&json!({"destroy": {"object": end}})).contains("has no object"));
    one.end();
    other.end();
}

/// The source of the expected value is `uname`.
#[test]
fn reports_the_kernel_of_its_host() {
    let mut talk = Talk::new(Limits::default());
    let printed = std::process::Command::new("uname").arg("-sr").output().unwrap();
    let device = talk.done(&json!("device"));
    assert_eq!(device["device"]["kernel"], String::from_utf8(printed.stdout).unwrap().trim());
    talk.end();
}

#[test]
fn reports_an_absent_peer() {
    let mut talk = Talk::new(Limits::default());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let domain = talk.number("domain", &json!("domain"));
    let way = talk.number("connection", &json!({"resolve": {"address": "127.0.0.1", "port": nobody}}));
    talk.done(&json!({"pair": {"connection": way, "domain": domain}}));
    talk.done(&json!({"connect": {"connection": way}}));
    assert_eq!(talk.event("rejected")["connection"], way);
    talk.end();
}

#[test]
fn a_connection_with_a_bound_window_can_be_destroyed() {
    let mut talk = Talk::new(Limits::default());
    let listener = talk.done(&json!({"listen": {"address": "127.0.0.1", "port": 0}}));
    let mut there = peer(u16::try_from(listener["listener"]["port"].as_u64().unwrap()).unwrap());
    there.write_all(&request(b"")).unwrap();
    let end = talk.event("request")["connection"].as_u64().unwrap();
    let domain = talk.number("domain", &json!("domain"));
    let shared = talk.number("shared", &json!({"shared": {"domain": domain, "depth": 4}}));
    let register = json!({"register": {"domain": domain, "octets": 4096, "access": ["bind", "local_write"]}});
    let region = talk.number("region", &register);
    let window = talk.number("window", &json!({"window": {"domain": domain, "posted": true}}));
    talk.done(&json!({"pair": {"connection": end, "domain": domain, "shared": shared}}));
    talk.done(&json!({"accept": {"connection": end}}));
    talk.event("established");
    let mut reply = [0; 20];
    there.read_exact(&mut reply).unwrap();
    // The Send Queue waits for the first message of the connecting side.
    talk.done(&json!({"post_receive": {"on": shared, "work": 2}}));
    there.write_all(&weft_fpdu()).unwrap();
    assert_eq!(talk.event("completion")["work"], 2);
    let bind = json!({"bind": {"window": window, "region": region, "length": 16, "access": ["remote_write"]}});
    talk.done(&json!({"post_send": {"connection": end, "work": 1, "operation": bind}}));
    assert_eq!(talk.event("completion")["status"], "success");
    talk.done(&json!({"destroy": {"object": end}}));
    // The peer notices only that the TCP connection ends.
    let ended = there.read(&mut [0; 100]).map_err(|why| why.kind());
    assert!(matches!(ended, Ok(0) | Err(std::io::ErrorKind::ConnectionReset)), "{ended:?}");
    // Destroy first the objects that use the Queue Pair, and then the objects that it uses.
    talk.failed(&json!({"destroy": {"object": shared}}));
    for object in [window, shared, region, domain] {
        talk.done(&json!({"destroy": {"object": object}}));
    }
    talk.end();
}

#[test]
fn a_tester_that_vanishes_closes_its_connections() {
    let mut talk = Talk::new(Limits::default());
    let listener = talk.done(&json!({"listen": {"address": "127.0.0.1", "port": 0}}));
    let port = u16::try_from(listener["listener"]["port"].as_u64().unwrap()).unwrap();
    let (silent, mut half, mut asks, mut there) = (peer(port), peer(port), peer(port), peer(port));
    half.write_all(b"MPA ID Req").unwrap();
    asks.write_all(&request(b"asks")).unwrap();
    talk.event("request");
    there.write_all(&request(b"there")).unwrap();
    let end = talk.event("request")["connection"].as_u64().unwrap();
    let domain = talk.number("domain", &json!("domain"));
    let region = talk.number("region", &json!({"register": {"domain": domain, "octets": 1 << 24, "access": []}}));
    talk.done(&json!({"pair": {"connection": end, "domain": domain}}));
    talk.done(&json!({"post_receive": {"on": end, "work": 2}}));
    talk.done(&json!({"accept": {"connection": end}}));
    let mut reply = [0; 20];
    there.read_exact(&mut reply).unwrap();
    // After this empty Send, the agent is allowed to send. The test gives it more data than TCP
    // accepts.
    there.write_all(&weft_fpdu()).unwrap();
    talk.event("established");
    assert_eq!(talk.event("completion")["work"], 2);
    let send = json!({"connection": end, "work": 1, "operation": {"send": {}}, "parts": [{"region": region, "length": 1 << 24}]});
    talk.done(&json!({ "post_send": send }));
    talk.end();
    for mut stream in [silent, half, asks, there] {
        // The sender is gone. So the test receives only the bytes in flight, and then FIN or RST.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 1 << 24, "{} bytes", rest.len());
    }
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "a listener still exists");
}

/// Returns an FPDU with a Send that has MSN 1 and no payload.
fn weft_fpdu() -> Vec<u8> {
    let header: &[u8] = &[0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let framing = weft_core::wire::mpa::Framing { markers: false, crc: true };
    let mut out = Vec::new();
    weft_core::wire::mpa::fpdu::emit(0, &[header], framing, &mut out).unwrap();
    out
}

#[test]
fn limits_hold_and_refused_requests_leave_nothing() {
    let mut talk = Talk::new(Limits { memory: 1 << 20, objects: 4 });
    let listener = talk.done(&json!({"listen": {"address": "127.0.0.1", "port": 0}}));
    let port = u16::try_from(listener["listener"]["port"].as_u64().unwrap()).unwrap();
    let domain = talk.number("domain", &json!("domain"));
    let all = json!({"register": {"domain": domain, "octets": 1 << 20}});
    let region = talk.number("region", &all);
    for octets in [1, u64::MAX] {
        assert!(
            talk.failed(&json!({"register": {"domain": domain, "octets": octets}}))
                .contains("can use only 0 more bytes")
        );
    }
    for length in [1 << 60, u64::MAX, (1 << 20) + 1] {
        for action in ["fill", "hash", "get"] {
            let mut fields = json!({"region": region, "offset": 1, "length": length});
            if action == "fill" {
                fields["seed"] = json!(7);
            }
            let why = talk.failed(&json!({ action: fields }));
            assert!(why.contains("which has 1048576 bytes") || why.contains("at most 262144"), "{action}: {why}");
        }
    }
    talk.number("domain", &json!("domain"));
    for more in [
        json!("domain"),
        json!({"window": {"domain": domain}}),
        json!({"shared": {"domain": domain, "depth": 1}}),
        json!({"listen": {"address": "127.0.0.1", "port": 0}}),
        json!({"resolve": {"address": "127.0.0.1", "port": 1}}),
    ] {
        assert_eq!(talk.failed(&more), "a control connection can have at most 4 objects; destroy one first", "{more}");
    }
    // The agent rejects and reports a peer's request that exceeds the limit of objects.
    let mut turned_away = peer(port);
    turned_away.write_all(&request(b"one more")).unwrap();
    let failed = talk.event("failed");
    assert_eq!(
        (&failed["connection"], &failed["kind"]),
        (&listener["listener"]["listener"], &json!("connect_request"))
    );
    let mut reply = Vec::new();
    turned_away.read_to_end(&mut reply).unwrap();
    assert!(reply.starts_with(b"MPA ID Rep Frame") && reply[16] & 0x20 != 0, "{reply:?}");
    drop(turned_away);
    // Freed memory can be used again.
    talk.done(&json!({"destroy": {"object": region}}));
    talk.number("region", &all);
    talk.end();
}

#[test]
fn queues_of_any_size_are_made_or_rejected() {
    let mut talk = Talk::new(Limits::default());
    let domain = talk.number("domain", &json!("domain"));
    let before = most_resident();
    for _ in 0..64 {
        let way = talk.number("connection", &json!({"resolve": {"address": "192.0.2.1", "port": 1}}));
        for (depth, parts) in [(u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)] {
            let pair = json!({"connection": way, "domain": domain, "depth": depth, "parts": parts, "inline": u32::MAX});
            talk.failed(&json!({ "pair": pair }));
            talk.failed(&json!({"shared": {"domain": domain, "depth": depth, "parts": parts}}));
        }
        talk.done(&json!({"pair": {"connection": way, "domain": domain, "depth": 16384, "parts": 16}}));
    }
    // The kernel's count is approximate, so the second value can be smaller than the first.
    let more = most_resident().saturating_sub(before);
    assert!(more < 64 << 20, "{more} bytes");
    talk.end();
}

/// Maximum resident memory of this process, in bytes.
fn most_resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn many_peers_come_and_go() {
    let mut talk = Talk::new(Limits { objects: 64, ..Limits::default() });
    let listener = talk.done(&json!({"listen": {"address": "127.0.0.1", "port": 0, "backlog": 1024}}));
    let port = u16::try_from(listener["listener"]["port"].as_u64().unwrap()).unwrap();
    let before = descriptors();
    for round in 0..1000 {
        let mut stream = peer(port);
        match round % 3 {
            0 => stream.write_all(&[0xff; 40]).unwrap(),
            1 => stream.write_all(b"MPA ID Req Frame").unwrap(),
            _ => socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap(),
        }
    }
    // An answer to this peer shows that the agent has handled all earlier peers.
    let mut last = peer(port);
    last.write_all(&request(b"last")).unwrap();
    let end = talk.event("request")["connection"].as_u64().unwrap();
    talk.done(&json!({"reject": {"connection": end}}));
    let mut reply = Vec::new();
    last.read_to_end(&mut reply).unwrap();
    drop(last);
    talk.done(&json!({"destroy": {"object": end}}));
    assert!(descriptors() <= before + 64, "{} descriptors, {before} before", descriptors());
    talk.end();
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
