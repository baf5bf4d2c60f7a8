//! Tests the commands `weft sdp`, which run as processes. Two proxies join TCP programs by SDP. The
//! tests check the end and the reset of streams in both directions, the port mapper, and the other
//! roles (`connect`, `serve`).
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

mod acknowledged;
mod agent;
mod bench;
mod faults;
mod process;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpSettings, SdpStream};
use weft_peer::verbs::{Node, RnicSettings};

use process::{
    KEEP_ALIVE, Listening, WEFT, fill, has_timer, octets, open, proxies, read_error, reset, server, through,
};

use crate::wait::wait_for;

#[test]
fn each_half_ends_by_itself_and_no_octet_is_lost() {
    let (server, at) = server();
    for options in [&[][..], &["--mode", "pipelined", "--threshold", "1000"], &["--bcopy", "--profile", "natural"]] {
        let (mut near, far) = proxies(&at, options);
        let (mut client, mut served) = through(&near, &server);
        let (up, down) = (octets(3_000_001), octets(2_000_003));
        let sent = up.clone();
        let asking = thread::spawn(move || {
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            got
        });
        let mut got = Vec::new();
        // The end of one half arrives while the other half is open and still transfers bytes.
        served.read_to_end(&mut got).unwrap();
        assert!(got == up, "{options:?}");
        served.write_all(&down).unwrap();
        drop(served);
        assert!(asking.join().unwrap() == down, "{options:?}");
        let report = near.next_report();
        assert_eq!((&report["end"], &report["error"]), (&"closed".into(), &Value::Null), "{report}");
        assert_eq!((&report["forth"], &report["back"]), (&3_000_001.into(), &2_000_003.into()), "{report}");
        for proxy in [near, far] {
            let rest = proxy.terminate();
            let totals = rest.last().unwrap();
            assert_eq!((&totals["kind"], &totals["connections"]), (&"sdp_totals".into(), &1.into()), "{totals}");
            assert_eq!((&totals["failed"], &totals["reset"]), (&0.into(), &0.into()), "{totals}");
        }
    }
}

#[test]
fn a_reset_is_a_reset_on_the_other_side() {
    let (server, at) = server();
    let (mut near, mut far) = proxies(&at, &[]);
    let (client, served) = open(&near, &server);
    reset(client);
    assert_eq!(read_error(served), ErrorKind::ConnectionReset);
    assert_eq!(near.next_report()["end"], "reset by the first side");
    assert_eq!(far.next_report()["end"], "reset by the first side");
    let (client, served) = open(&near, &server);
    reset(served);
    assert_eq!(read_error(client), ErrorKind::ConnectionReset);
    assert_eq!(near.next_report()["end"], "reset by the second side");
    assert_eq!(far.next_report()["end"], "reset by the second side");
}

/// A relay enables TCP keep-alive on both of its connections, to detect a peer that disappeared.
#[test]
fn keep_alive_probes_a_silent_peer() {
    let (server, at) = server();
    let (near, far) = proxies(&at, &[]);
    let port = |at: &str| at.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let (client, served) = open(&near, &server);
    let sides =
        [(port(&near.at), client.local_addr().unwrap().port()), (served.peer_addr().unwrap().port(), port(&at))];
    for (proxy, program) in sides {
        wait_for("keep-alive", || has_timer(proxy, program, KEEP_ALIVE).then_some(()));
    }
    // Find the TCP connection of SDP. Only one of its ports is known, so search the kernel's table.
    let sdp = format!(":{:04X}", port(&far.at));
    let is_kept = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        // State 01 means established.
        let ours = columns[3] == "01" && columns[1..3].iter().any(|name| name.ends_with(&sdp));
        (ours, columns[5].starts_with(KEEP_ALIVE))
    };
    wait_for("keep-alive of both ends of SDP's connection", || {
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let ends: Vec<bool> =
            table.lines().skip(1).map(is_kept).filter(|(ours, _)| *ours).map(|(_, kept)| kept).collect();
        (ends == [true, true]).then_some(())
    });
}

/// The program on the far side does not read, so all buffers on the path are full. Then the program
/// on the near side resets its stream.
#[test]
fn a_reset_passes_by_octets_that_nobody_takes() {
    let (server, at) = server();
    let (mut near, mut far) = proxies(&at, &[]);
    let (client, served) = open(&near, &server);
    fill(&client, &served, &[0; 1 << 20]);
    reset(client);
    assert_eq!(near.next_report()["end"], "reset by the first side");
    assert_eq!(far.next_report()["end"], "reset by the first side");
    drop(served);
}

#[test]
fn a_server_that_is_not_there_resets_the_client() {
    let (gone, at) = server();
    drop(gone);
    let (mut near, mut far) = proxies(&at, &[]);
    let client = TcpStream::connect(&near.at).unwrap();
    assert_eq!(read_error(client), ErrorKind::ConnectionReset);
    let report = far.next_report();
    assert_eq!(report["end"], "failed", "{report}");
    assert!(report["error"].as_str().unwrap().contains("refused"), "{report}");
    // The near proxy reports a connection that was established and then broke.
    assert_eq!(near.next_report()["end"], "reset by the second side");
    // Above, the server did not exist. Now the far proxy does not exist either.
    drop(far);
    let client = TcpStream::connect(&near.at).unwrap();
    assert_eq!(read_error(client), ErrorKind::ConnectionReset);
    assert_eq!(near.next_report()["end"], "failed");
}

#[test]
fn connections_beyond_the_limit_wait_for_one_to_end() {
    let (server, at) = server();
    let (near, far) = proxies(&at, &["--most", "2"]);
    let first = through(&near, &server);
    let _second = through(&near, &server);
    let mut third = TcpStream::connect(&near.at).unwrap();
    third.write_all(b"third").unwrap();
    server.set_nonblocking(true).unwrap();
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    server.set_nonblocking(false).unwrap();
    drop(first);
    let (mut served, _) = server.accept().unwrap();
    let mut got = [0; 5];
    served.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"third");
    // When the proxy ends, it resets its open streams.
    let rest = near.terminate();
    let totals = rest.last().unwrap();
    assert_eq!((&totals["connections"], &totals["most"], &totals["stopped"]), (&3.into(), &2.into(), &2.into()));
    drop(far);
}

#[test]
fn the_port_mapper_reports_the_address_of_sdp() {
    let (server, at) = server();
    let to = format!("tcp://{at}");
    let mut far = Listening::start(&[
        "proxy",
        "--json",
        "--listen",
        "sdp://127.0.0.1:0",
        "--connect",
        &to,
        "--pm-listen",
        "127.0.0.1:0",
        "--service",
        &at,
    ]);
    let mapper = far.lines.next().unwrap().unwrap().strip_prefix("port mapper on ").unwrap().to_owned();
    let service = format!("sdp://{at}");
    let ask = ["proxy", "--json", "--listen", "tcp://127.0.0.1:0", "--connect", &service, "--pm", &mapper];
    let mut near = Listening::start(&[&ask[..], &["--sdp-only"]].concat());
    let (mut client, mut served) = through(&near, &server);
    client.write_all(b"mapped").unwrap();
    drop(client);
    let mut got = String::new();
    served.read_to_string(&mut got).unwrap();
    drop(served);
    assert_eq!(got, "mapped");
    assert_eq!(near.next_report()["forth"], 6);
    // The far proxy also reports the bytes. So the data was transferred by SDP, and not by plain
    // TCP.
    assert_eq!(far.next_report()["forth"], 6);
    // The port mapper has no mapping for the other service. With `--sdp-only`, the proxy resets the
    // connection. Otherwise, it uses plain TCP.
    let (other, at) = self::server();
    let service = format!("sdp://{at}");
    let ask = ["proxy", "--json", "--listen", "tcp://127.0.0.1:0", "--connect", &service, "--pm", &mapper];
    let mut near = Listening::start(&[&ask[..], &["--sdp-only"]].concat());
    assert_eq!(read_error(TcpStream::connect(&near.at).unwrap()), ErrorKind::ConnectionReset);
    assert!(
        near.next_report()["error"].as_str().unwrap().contains("by SDP, because the port mapper denied the request")
    );
    let near = Listening::start(&ask);
    let (mut client, mut served) = through(&near, &other);
    client.write_all(b"plain").unwrap();
    drop(client);
    let mut got = String::new();
    served.read_to_string(&mut got).unwrap();
    assert_eq!(got, "plain");
    // `weft sdp connect` needs no proxy, and behaves in the same way.
    let refused = connect(&at, &["--pm", &mapper, "--sdp-only"], Vec::new());
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(3) && message.contains("the port mapper denied the request"), "{refused:?}");
    let echo = thread::spawn(move || {
        let (mut served, _) = other.accept().unwrap();
        let mut got = Vec::new();
        served.read_to_end(&mut got).unwrap();
        served.write_all(&got).unwrap();
    });
    let plain = connect(&at, &["--pm", &mapper], b"no proxy".to_vec());
    echo.join().unwrap();
    assert!(plain.status.success() && plain.stdout == b"no proxy", "{plain:?}");
    assert!(String::from_utf8_lossy(&plain.stderr).contains("using plain TCP"), "{plain:?}");
}

#[test]
fn the_capture_of_a_proxy_breaks_no_rule() {
    let (server, at) = server();
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("proxy.pcapng");
    let capture = capture.to_str().unwrap();
    let to = format!("tcp://{at}");
    let far = Listening::start(&["proxy", "--json", "--listen", "sdp://127.0.0.1:0", "--connect", &to]);
    let to = format!("sdp://{}", far.at);
    let listen = ["proxy", "--json", "--listen", "tcp://127.0.0.1:0", "--connect", &to, "--write", capture];
    let mut near = Listening::start(&listen);
    let (mut client, mut served) = through(&near, &server);
    client.write_all(&octets(300_000)).unwrap();
    drop(client);
    let mut got = Vec::new();
    served.read_to_end(&mut got).unwrap();
    drop(served);
    assert_eq!(near.next_report()["forth"], 300_000);
    near.terminate();
    let lint = Command::new(WEFT).args(["lint", "--json", capture]).output().unwrap();
    let summary: Value =
        serde_json::from_slice(lint.stdout.trim_ascii().rsplit(|octet| *octet == b'\n').next().unwrap()).unwrap();
    assert_eq!((&summary["error"], &summary["warning"]), (&0.into(), &0.into()), "{summary}");
    let units = Command::new(WEFT).args(["dissect", "-T", "fields", "-e", "iwarp_sdp.mid", capture]).output().unwrap();
    assert!(String::from_utf8(units.stdout).unwrap().lines().filter(|line| !line.is_empty()).count() > 5);
}

fn connect(peer: &str, options: &[&str], input: Vec<u8>) -> Output {
    let mut process = Command::new(WEFT)
        .args(["sdp", "connect", peer])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let giving = thread::spawn(move || stdin.write_all(&input));
    let output = process.wait_with_output().unwrap();
    // If the process takes no input, writing to it fails. So the result is ignored.
    let _ = giving.join().unwrap();
    output
}

#[test]
fn serve_echoes_takes_and_gives() {
    let mut echo = Listening::start(&["serve", "--listen", "127.0.0.1:0"]);
    let compared = connect(&echo.at, &["--octets", "100000"], Vec::new());
    assert!(compared.status.success(), "{compared:?}");
    assert!(echo.lines.next().unwrap().unwrap().ends_with("echoed 100000"));
    let sent = octets(200_000);
    let cat = connect(&echo.at, &[], sent.clone());
    assert!(cat.status.success() && cat.stdout == sent, "{:?}", cat.status);
    let mut sink = Listening::start(&["serve", "sink", "--listen", "127.0.0.1:0", "--once"]);
    assert!(connect(&sink.at, &[], sent).status.success());
    assert_eq!(sink.lines.next().unwrap().unwrap(), "received 200000");
    assert!(sink.process.wait().unwrap().success());
    let source = Listening::start(&["serve", "source", "--listen", "127.0.0.1:0", "--octets", "123456"]);
    assert_eq!(connect(&source.at, &[], Vec::new()).stdout.len(), 123_456);
    let different = connect(&source.at, &["--octets", "5"], Vec::new());
    assert_eq!(different.status.code(), Some(1), "{different:?}");
}

/// The exit code with `--once` depends on how the connection ended, even if all bytes were sent and
/// received. If the peer resets the connection, the code is 1.
#[tokio::test]
async fn one_connection_that_was_reset_did_not_end_well() {
    for (reset, code) in [(false, 0), (true, 1)] {
        let mut source = Listening::start(&["serve", "source", "--listen", "127.0.0.1:0", "--octets", "100", "--once"]);
        let device = Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0);
        let at = source.at.parse().unwrap();
        let mut stream = SdpStream::connect(&device, at, SdpSettings::default()).await.unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).await.unwrap();
        assert_eq!(got.len(), 100);
        if reset {
            stream.abort();
        } else {
            stream.shutdown().await.unwrap();
        }
        stream.closed().await;
        assert_eq!(source.process.wait().unwrap().code(), Some(code), "reset: {reset}");
    }
}

/// The exit code is also 1 if the peer violates a requirement. One peer sends a Data message that
/// announces one byte more than it has. The other peer sends a Data message after its DisConn.
#[test]
fn one_connection_whose_peer_broke_a_rule_did_not_end_well() {
    // The role `source` receives no data, so it gets no input.
    let services = [(&["echo"][..], 2000), (&["sink"], 2000), (&["source", "--octets", "3000"], 0)];
    for (what, input) in services {
        for (deviation, code) in [(None, 0), (Some("sdp.len-one-more"), 1), (Some("sdp.data-after-dis-conn"), 1)] {
            let mut once = Listening::start(&[&["serve"], what, &["--listen", "127.0.0.1:0", "--once"]].concat());
            let deviate: Vec<&str> = deviation.into_iter().flat_map(|name| ["--deviate", name]).collect();
            connect(&once.at, &deviate, octets(input));
            assert_eq!(once.process.wait().unwrap().code(), Some(code), "{what:?} {deviation:?}");
        }
    }
}

/// If the reader closes the pipe of the output, this is not an error of the connection.
#[test]
fn a_reader_that_stops_ends_the_connection_well() {
    let source = Listening::start(&["serve", "source", "--listen", "127.0.0.1:0", "--octets", "100000000"]);
    let mut process = Command::new(WEFT)
        .args(["sdp", "connect", &source.at])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    process.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let ended = process.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("the reader closed the output"), "{ended:?}");
}

#[test]
fn one_connection_that_was_interrupted_did_not_end_well() {
    let once = Listening::start(&["serve", "--listen", "127.0.0.1:0", "--once"]);
    assert_eq!(once.interrupted().code(), Some(128 + 15));
    let many = Listening::start(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(many.interrupted().code(), Some(0));
}

#[test]
fn a_broken_rule_is_reported_to_the_user() {
    let echo = Listening::start(&["serve", "--listen", "127.0.0.1:0", "--deviate", "sdp.hello-ack-majv-2"]);
    let refused = connect(&echo.at, &["--octets", "100"], Vec::new());
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("MajV 2 in the peer's HelloAck"), "{message}");
    let echo = Listening::start(&["serve", "--listen", "127.0.0.1:0"]);
    let deviates = ["--octets", "100", "--trace", "--deviate", "sdp.flags-reserved"];
    let message = String::from_utf8(connect(&echo.at, &deviates, Vec::new()).stderr).unwrap();
    assert!(message.contains("SDP-6.1.2-5"), "{message}");
    let unknown = connect(&echo.at, &["--deviate", "sdp.nothing"], Vec::new());
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

/// With `--at`, weft performs an action at an offset of the written bytes. If the connection writes
/// fewer bytes, weft reports that it did not perform the action.
#[test]
fn an_action_that_is_never_reached_is_reported() {
    let echo = Listening::start(&["serve", "--listen", "127.0.0.1:0"]);
    let done = |options: &[&str]| connect(&echo.at, &[options, &["--trace"]].concat(), Vec::new());
    for (octets, at) in [("0", "0:resize=2000"), ("100", "100:resize=2000")] {
        let output = done(&["--octets", octets, "--at", at]);
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("ChRcvBuf"), "{octets} {at}");
    }
    let never = done(&["--octets", "100", "--at", "101:urgent"]);
    assert_eq!(never.status.code(), Some(2), "{never:?}");
    assert!(
        String::from_utf8(never.stderr)
            .unwrap()
            .contains("--at 101:urgent never runs: the connection writes only 100 bytes")
    );
    for what in [&["sink"][..], &["source", "--octets", "4"]] {
        let serve = ["sdp", "serve", "--listen", "127.0.0.1:0", "--at", "5:urgent"];
        let refused = Command::new(WEFT).args(serve).args(what).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{what:?}: {refused:?}");
    }
    // The number of bytes that an echo writes is known only at its end, so weft prints the message
    // at the end.
    let mut echo = Command::new(WEFT)
        .args(["sdp", "serve", "--once", "--listen", "127.0.0.1:0", "--at", "50:urgent", "--at", "700:move"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(echo.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    let at = first.trim_end().rsplit(' ').next().unwrap();
    assert!(connect(at, &[], octets(100)).status.success());
    let output = echo.wait_with_output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("these --at actions did not run: 700:move; the connection wrote only 100 bytes"),
        "{output:?}"
    );
}

#[test]
fn usage_and_absence_have_their_exit_codes() {
    let wrong: [&[&str]; 5] = [
        &["proxy", "--listen", "tcp://127.0.0.1:0", "--connect", "tcp://127.0.0.1:1"],
        &["proxy", "--listen", "127.0.0.1:0", "--connect", "sdp://127.0.0.1:1"],
        &["proxy", "--listen", "sdp://127.0.0.1:0", "--connect", "tcp://127.0.0.1:1", "--pm"],
        &["proxy", "--listen", "sdp://127.0.0.1:0", "--connect", "tcp://127.0.0.1:1", "--pm-listen", "127.0.0.1:0"],
        &["serve", "nothing"],
    ];
    for arguments in wrong {
        let output = Command::new(WEFT).arg("sdp").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
    let (gone, at) = server();
    drop(gone);
    assert_eq!(connect(&at, &[], Vec::new()).status.code(), Some(3));
}
