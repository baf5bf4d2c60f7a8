//! Tests faults outside an SDP connection: a killed process, a dead port mapper, and a program that
//! does not read. After each fault, a program gets the same error as with a TCP socket. No
//! descriptor stays open, and no byte that was acknowledged to the other side is lost.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use tokio::io::AsyncReadExt;
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpListener, SdpSettings};
use weft_peer::verbs::{Node, RnicSettings};

use crate::sdp::process::{Listening, WEFT, fill, octets, open, proxies, read_error, server, through};
use crate::wait::{LONG, wait_for};

/// Waits until the number of open descriptors of a process is `descriptors` again.
fn comes_back_to(proxy: &Listening, descriptors: usize) {
    wait_for("its descriptors are closed", || (proxy.descriptors() == descriptors).then_some(()));
}

/// A child process. It is killed at the end of the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `weft sdp connect PEER` with pipes.
pub(crate) fn connect(peer: &str) -> Running {
    let mut command = Command::new(WEFT);
    command.args(["sdp", "connect", peer]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(command.spawn().unwrap())
}

#[test]
fn a_killed_proxy_resets_both_programs_and_the_other_proxy_goes_on() {
    let (server, at) = server();
    // In the first round, kill the proxy in front of the server (`far`). In the second round, kill
    // the other proxy (`near`).
    for near_dies in [false, true] {
        let (mut near, mut far) = proxies(&at, &[]);
        let idle = [near.descriptors(), far.descriptors()];
        let several: Vec<_> = (0..3).map(|_| open(&near, &server)).collect();
        if near_dies {
            near.kill();
        } else {
            far.kill();
        }
        for (client, served) in several {
            // The program of the killed proxy must also get a reset. An end of the stream would
            // mean for the program that its data is complete.
            assert_eq!(read_error(client), ErrorKind::ConnectionReset, "near dies: {near_dies}");
            assert_eq!(read_error(served), ErrorKind::ConnectionReset, "near dies: {near_dies}");
        }
        let (left, idle) = if near_dies { (&mut far, idle[1]) } else { (&mut near, idle[0]) };
        for _ in 0..3 {
            let report = left.next_report();
            let end = if near_dies { "reset by the first side" } else { "reset by the second side" };
            assert_eq!(report["end"], end, "{report}");
            assert_eq!((&report["forth"], &report["back"]), (&1.into(), &1.into()), "{report}");
        }
        comes_back_to(left, idle);
        if near_dies {
            // A new proxy can connect to the remaining proxy.
            let to = format!("sdp://{}", far.at);
            near = Listening::start(&["proxy", "--json", "--listen", "tcp://127.0.0.1:0", "--connect", &to]);
            let (client, served) = open(&near, &server);
            drop((client, served));
            assert_eq!(far.next_report()["end"], "closed");
        } else {
            let client = TcpStream::connect(&near.at).unwrap();
            assert_eq!(read_error(client), ErrorKind::ConnectionReset);
            assert_eq!(near.next_report()["end"], "failed");
            comes_back_to(&near, idle);
        }
    }
}

/// A process that serves many connections needs many descriptors. weft raises the soft limit of
/// descriptors, so it can serve more connections than this limit allowed at the start.
#[test]
fn as_many_descriptors_are_taken_as_there_may_be() {
    let mut echo = Command::new("sh")
        .args(["-c", "ulimit -Sn 30; exec \"$0\" sdp serve --listen 127.0.0.1:0", WEFT])
        .stdout(Stdio::piped())
        .spawn()
        .map(Running)
        .unwrap();
    let mut line = String::new();
    BufReader::new(echo.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let at = line.trim().rsplit(' ').next().unwrap();
    let mut children: Vec<Running> = (0..40).map(|_| connect(at)).collect();
    for child in &mut children {
        child.0.stdin.as_mut().unwrap().write_all(&[9; 10]).unwrap();
        child.0.stdout.as_mut().unwrap().read_exact(&mut [0; 10]).unwrap();
    }
}

#[test]
fn a_killed_server_breaks_the_connection_after_its_echo() {
    let mut echo = Listening::start(&["serve", "--listen", "127.0.0.1:0"]);
    let mut child = connect(&echo.at);
    let sent = octets(100_000);
    let (mut stdin, mut stdout) = (child.0.stdin.take().unwrap(), child.0.stdout.take().unwrap());
    stdin.write_all(&sent).unwrap();
    let mut got = vec![0; sent.len()];
    stdout.read_exact(&mut got).unwrap();
    assert!(got == sent);
    echo.kill();
    let mut message = String::new();
    BufReader::new(child.0.stderr.take().unwrap()).read_line(&mut message).unwrap();
    assert!(message.contains("the connection broke"), "{message}");
    assert_eq!(child.0.wait().unwrap().code(), Some(1));
}

#[test]
fn a_killed_client_resets_its_connection_and_no_other() {
    let mut echo = Listening::start(&["serve", "--listen", "127.0.0.1:0"]);
    let idle = echo.descriptors();
    let mut children: Vec<Running> = (0..2).map(|_| connect(&echo.at)).collect();
    for child in &mut children {
        child.0.stdin.as_mut().unwrap().write_all(&[9; 3000]).unwrap();
        child.0.stdout.as_mut().unwrap().read_exact(&mut [0; 3000]).unwrap();
    }
    children[0].0.kill().unwrap();
    let message = echo.lines.next().unwrap().unwrap();
    assert!(message.contains("reset"), "{message}");
    let mut left = children.pop().unwrap();
    left.0.stdin.take().unwrap().write_all(&[8; 3000]).unwrap();
    let mut rest = Vec::new();
    left.0.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [8; 3000]);
    assert!(echo.lines.next().unwrap().unwrap().ends_with("echoed 6000"));
    comes_back_to(&echo, idle);
}

/// Bytes arrive and are acknowledged, and then the process of their sender dies. The user can still
/// read these bytes.
#[tokio::test]
async fn octets_that_arrived_are_read_after_the_death_of_their_sender() {
    let device = Device::new(Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap().0);
    let listener = SdpListener::bind(&device, SocketAddr::from(([127, 0, 0, 1], 0)), SdpSettings::default()).unwrap();
    let mut child = connect(&listener.local_addr().unwrap().to_string());
    let mut stream = listener.accept().await.unwrap();
    let sent = octets(150_000);
    let (mut stdin, given) = (child.0.stdin.take().unwrap(), sent.clone());
    let writing = thread::spawn(move || (stdin.write_all(&given), stdin));
    // The user does not read, so the data stays in posted receives.
    let arrived = async {
        while stream.statistics().unread < 150_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, arrived).await.unwrap();
    child.0.kill().unwrap();
    stream.broken().await;
    let mut got = vec![0; sent.len()];
    stream.read_exact(&mut got).await.unwrap();
    assert!(got == sent);
    assert_eq!(stream.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    stream.closed().await;
    drop(writing.join().unwrap());
}

/// If a port mapper does not answer, the proxy uses plain TCP (draft-pinkerton-iwarp-sdp-01 section
/// 7.5.1). With `--sdp-only`, it resets the connection instead. A connection that is already open
/// is not affected.
#[test]
fn a_port_mapper_that_dies_leads_to_plain_tcp_or_to_a_reset() {
    let (server, at) = server();
    let to = format!("tcp://{at}");
    let far = Listening::start(&["proxy", "--json", "--listen", "sdp://127.0.0.1:0", "--connect", &to]);
    let map = format!("{at}={}", far.at);
    let mut mapper = Command::new(WEFT);
    mapper.args(["pm", "serve", "--listen", "127.0.0.1:0", "--map", &map]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut mapper = Running(mapper.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(mapper.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mapper_at = line.trim().rsplit(' ').next().unwrap().to_owned();
    let service = format!("sdp://{at}");
    let ask = ["proxy", "--json", "--listen", "tcp://127.0.0.1:0", "--connect", &service, "--pm", &mapper_at];
    let mut plain = Listening::start(&ask);
    let mut strict = Listening::start(&[&ask[..], &["--sdp-only"]].concat());
    let (mut client, mut served) = open(&strict, &server);
    mapper.0.kill().unwrap();
    mapper.0.wait().unwrap();
    let refused = thread::spawn({
        let at = strict.at.clone();
        move || read_error(TcpStream::connect(at).unwrap())
    });
    let (mut conventional, mut other) = through(&plain, &server);
    conventional.write_all(b"plain").unwrap();
    drop(conventional);
    let mut got = String::new();
    other.read_to_string(&mut got).unwrap();
    drop(other);
    assert_eq!((got.as_str(), &plain.next_report()["forth"]), ("plain", &5.into()));
    assert_eq!(refused.join().unwrap(), ErrorKind::ConnectionReset);
    let report = strict.next_report();
    assert!(report["error"].as_str().unwrap().contains("by SDP, because the host has no port mapper"), "{report}");
    // The connection that the port mapper mapped earlier still works.
    client.write_all(&[7]).unwrap();
    served.read_exact(&mut [0]).unwrap();
}

/// If a program does not read, the program that writes has to wait, and the amount of buffered data
/// has a limit. Later, the first program reads all data. Then it stops reading again and resets the
/// stream.
#[test]
fn a_program_that_stops_reading_stops_the_other_side() {
    let (server, at) = server();
    for mode in ["combined", "pipelined", "buffered"] {
        let (near, mut far) = proxies(&at, &["--mode", mode]);
        let idle = [near.descriptors(), far.descriptors()];
        let (client, mut served) = open(&near, &server);
        let piece = octets(1 << 20);
        let sent = fill(&client, &served, &piece);
        // The kernel buffers of the four sockets and the buffers of the two proxies hold less than
        // this limit.
        assert!(sent < 64 << 20, "{mode}: {sent} bytes went nowhere");
        for proxy in [&near, &far] {
            assert!(proxy.most_memory() < 64 << 10, "{mode}: {} KiB", proxy.most_memory());
        }
        let mut got = vec![0; sent];
        served.read_exact(&mut got).unwrap();
        assert!(got.chunks(piece.len()).all(|got| got == &piece[..got.len()]), "{mode}");
        // The program stops reading again, and closes while there are unread bytes. So its kernel
        // resets the stream.
        let writing = thread::spawn(move || {
            loop {
                if let Err(error) = (&client).write(&piece) {
                    return error.kind();
                }
            }
        });
        served.read_exact(&mut [0; 1000]).unwrap();
        drop(served);
        let error = writing.join().unwrap();
        assert!([ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error), "{mode}: {error}");
        assert_eq!(far.next_report()["end"], "reset by the second side", "{mode}");
        comes_back_to(&near, idle[0]);
        comes_back_to(&far, idle[1]);
    }
}
