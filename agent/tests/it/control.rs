//! Tests the control protocol with harmful and harmless input. The backend has no device.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use weft_agent::listen::{MAX_TESTERS, listen};
use weft_agent::protocol::{Action, Event, Failure, LONGEST_LINE, Octets, Success, VERSION, pattern};
use weft_agent::serve::{Backend, ServeError, serve};

/// A backend that counts its instances. It answers `Domain` with a number and an event.
struct Fake {
    alive: Arc<AtomicUsize>,
    /// A descriptor to poll, on which nothing arrives.
    quiet: UnixStream,
    _other: UnixStream,
    events: Vec<Event>,
}

impl Fake {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        let (quiet, other) = UnixStream::pair().unwrap();
        Fake { alive: Arc::clone(alive), quiet, _other: other, events: Vec::new() }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Backend for Fake {
    fn perform(&mut self, action: Action) -> Result<Success, Failure> {
        match action {
            Action::Domain => {
                self.events.push(Event::Disconnected { connection: 7 });
                Ok(Success::Domain { domain: 1 })
            }
            Action::Put { octets, .. } => Ok(Success::Octets { octets }),
            _ => Err(Failure::of("not here")),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.quiet.as_fd()]
    }
}

struct Tester {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    alive: Arc<AtomicUsize>,
    agent: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Tester {
    fn new(token: Option<&'static str>) -> Self {
        let (stream, agents) = UnixStream::pair().unwrap();
        let alive = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&alive);
        let agent = thread::spawn(move || serve(&agents, &agents, token, Instant::now(), || Ok(Fake::new(&counted))));
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Tester { stream, lines, alive, agent: Some(agent) }
    }

    fn hello(self) -> Self {
        let mut tester = self;
        let message = tester.ask(&json!({"id": 1, "do": {"hello": {"version": VERSION}}}));
        assert_eq!(message["answer"]["done"]["hello"]["version"], VERSION);
        tester
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.send(format!("{request}\n").as_bytes());
        self.receive()
    }

    fn send(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the agent has gone");
        serde_json::from_str(&line).unwrap()
    }

    /// Disconnects. Returns the result of the service, and asserts that no backend exists any more.
    fn end(&mut self) -> Result<(), ServeError> {
        let _ = self.stream.shutdown(Shutdown::Write);
        let ended = self.agent.take().unwrap().join().unwrap();
        assert_eq!(self.alive.load(Ordering::SeqCst), 0, "something is left of the control connection");
        ended
    }
}

#[test]
fn each_request_has_its_answer_and_events_come_between() {
    let mut tester = Tester::new(None).hello();
    tester.send(b"{\"id\":5,\"do\":\"domain\"}\n{\"id\":6,\"do\":\"device\"}\n");
    let [first, event, second] = [tester.receive(), tester.receive(), tester.receive()];
    assert_eq!(first["answer"], json!({"id": 5, "done": {"domain": {"domain": 1}}}));
    assert_eq!(event["event"], json!({"disconnected": {"connection": 7}}));
    assert_eq!(second["answer"], json!({"id": 6, "failed": {"what": "not here"}}));
    let at = |message: &Value| message["at"].as_u64().unwrap();
    assert!(at(&first) <= at(&event) && at(&event) <= at(&second));
    tester.end().unwrap();
}

#[test]
fn requires_a_valid_hello() {
    let refused = [
        ("{\"id\":1,\"do\":\"domain\"}\n", "the first request must be `hello`"),
        ("{\"id\":1,\"do\":{\"hello\":{\"version\":2,\"token\":\"secret\"}}}\n", "the agent has protocol version 1"),
        ("{\"id\":1,\"do\":{\"hello\":{\"version\":1}}}\n", "wrong token"),
        ("{\"id\":1,\"do\":{\"hello\":{\"version\":1,\"token\":\"secreT\"}}}\n", "wrong token"),
        ("{\"id\":1,\"do\":{\"hello\":{\"version\":1,\"token\":\"secret \"}}}\n", "wrong token"),
        ("GET / HTTP/1.1\r\n\r\n", "the line is not a valid request"),
        ("\n", "the line is not a valid request"),
    ];
    for (input, why) in refused {
        let mut tester = Tester::new(Some("secret"));
        tester.send(input.as_bytes());
        let message = tester.receive();
        assert!(message["answer"]["failed"]["what"].as_str().unwrap().starts_with(why), "{input}: {message}");
        assert!(matches!(tester.end(), Err(ServeError::NoHello(_))), "{input}");
    }
    let mut tester = Tester::new(Some("secret"));
    tester.send(&vec![b'{'; 5000]);
    assert!(tester.receive()["answer"]["failed"]["what"].as_str().unwrap().contains("4096 bytes"));
    assert!(matches!(tester.end(), Err(ServeError::NoHello(_))));
    let mut tester = Tester::new(Some("secret"));
    let message = tester.ask(&json!({"id": 1, "do": {"hello": {"version": 1, "token": "secret"}}}));
    assert_eq!(message["answer"]["id"], 1);
    tester.end().unwrap();
}

#[test]
fn reports_an_unreadable_line_and_handles_the_next() {
    let mut tester = Tester::new(None).hello();
    for wrong in [
        "",
        "nonsense",
        "[]",
        "{}",
        "{\"id\":1}",
        "{\"id\":-1,\"do\":\"domain\"}",
        "{\"id\":1,\"do\":\"domain\",\"more\":1}",
        "{\"id\":1,\"do\":{\"put\":{\"region\":1,\"octets\":\"0\"}}}",
        "{\"id\":1,\"do\":{\"put\":{\"region\":1,\"octets\":\"0g\"}}}",
        "{\"id\":1,\"do\":{\"put\":{\"region\":1,\"octets\":\"é\"}}}",
        "{\"id\":1,\"do\":{\"listen\":{\"address\":\"x\",\"port\":1}}}",
        "{\"id\":1,\"do\":{\"domain\":{}}}",
    ] {
        tester.send(format!("{wrong}\n").as_bytes());
        let message = tester.receive();
        assert!(message["answer"]["id"].is_null() && message["answer"]["failed"].is_object(), "{wrong}: {message}");
    }
    // The JSON parser limits the depth of nesting.
    tester.send(&vec![b'['; 100_000]);
    tester.send(b"\n");
    assert!(tester.receive()["answer"]["failed"].is_object());
    assert_eq!(tester.ask(&json!({"id": 9, "do": "domain"}))["answer"]["id"], 9);
    tester.end().unwrap();
}

#[test]
fn octets_are_hexadecimal_in_both_directions() {
    let mut tester = Tester::new(None).hello();
    let message = tester.ask(&json!({"id": 2, "do": {"put": {"region": 1, "octets": "00fFa5"}}}));
    assert_eq!(message["answer"]["done"]["octets"]["octets"], "00ffa5");
    assert_eq!(serde_json::to_value(Octets(vec![1, 0xab])).unwrap(), "01ab");
    tester.end().unwrap();
}

#[test]
fn the_pattern_is_the_documented_one() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agent.md")).unwrap();
    let octets: Vec<String> = (0..5).map(|index| format!("{:02x}", pattern(7, index))).collect();
    assert!(page.contains(&format!("With `seed` 7, the pattern begins `{}`", octets.join(" "))), "{octets:?}");
}

#[test]
fn a_line_without_an_end_ends_the_connection() {
    let mut tester = Tester::new(None).hello();
    // The agent stops reading at this length, so the test sends no more.
    tester.send(&vec![b' '; LONGEST_LINE]);
    assert!(tester.receive()["answer"]["failed"]["what"].as_str().unwrap().contains("1048576 bytes"));
    assert!(matches!(tester.end(), Err(ServeError::TooLong(LONGEST_LINE))));
}

#[test]
fn a_tester_that_vanishes_frees_everything() {
    for input in [&b""[..], b"{\"id\":1,", b"{\"id\":1,\"do\":\"domain\"}\n"] {
        let mut tester = Tester::new(None).hello();
        tester.send(input);
        tester.end().unwrap();
    }
}

#[test]
fn rejects_one_tester_too_many_with_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let alive = Arc::new(AtomicUsize::new(0));
    // The agent listens until this process ends.
    thread::spawn(move || listen(&listener, None, move || Ok(Fake::new(&alive)), |_, _| ()));
    let tester = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"{\"id\":1,\"do\":{\"hello\":{\"version\":1}}}\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        (lines, serde_json::from_str::<Value>(&line).unwrap())
    };
    let there: Vec<_> = (0..MAX_TESTERS).map(|_| tester()).collect();
    assert!(there.iter().all(|(_, message)| message["answer"]["done"]["hello"].is_object()), "{there:?}");
    let (_, message) = tester();
    let why = message["answer"]["failed"]["what"].as_str().unwrap();
    assert!(why.contains("already serves 8 testers"), "{why}");
}

/// Connections without a hello do not keep out valid clients, even if their number exceeds the
/// limit for testers.
#[test]
fn silent_connections_do_not_block_testers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let alive = Arc::new(AtomicUsize::new(0));
    // The agent listens until this process ends.
    thread::spawn(move || listen(&listener, Some("secret"), move || Ok(Fake::new(&alive)), |_, _| ()));
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        BufReader::new(stream)
    };
    let line = |stream: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line
    };
    let mut silent: Vec<_> = (0..3 * MAX_TESTERS).map(|_| connect()).collect();
    for _ in 0..20 {
        let mut wrong = connect();
        wrong.get_mut().write_all(b"{\"id\":1,\"do\":{\"hello\":{\"version\":1,\"token\":\"wrong\"}}}\n").unwrap();
        silent.push(wrong);
        let mut right = connect();
        right.get_mut().write_all(b"{\"id\":1,\"do\":{\"hello\":{\"version\":1,\"token\":\"secret\"}}}\n").unwrap();
        let message = line(&mut right);
        assert!(message.contains("\"done\""), "{message}");
    }
    // Each of these connections gets a reason before the agent closes it.
    for mut silent in silent {
        let message = line(&mut silent);
        let reasons = ["another connection needs the slot", "no `hello` arrived within 2 s", "wrong token"];
        assert!(reasons.iter().any(|reason| message.contains(reason)), "{message}");
    }
}

/// A client must send its hello within 2 s, so a silent client does not keep its slot. A tester
/// that has sent its hello is allowed to be silent for longer.
#[test]
fn a_client_without_hello_is_closed_and_a_silent_tester_is_not() {
    let address = guarded();
    let mut tester = hello(US, address, "secret");
    assert!(is_right(&tester));
    // The tester is silent from now on, and the client connects later. So when the agent closes
    // the client's connection, the tester has been silent for longer than the client.
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut message = String::new();
    client.read_to_string(&mut message).unwrap();
    assert!(message.contains("no `hello` arrived within 2 s") && message.lines().count() == 1, "{message}");
    tester.write_all(b"{\"id\":2,\"do\":\"domain\"}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(tester).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"done\""), "{answer}");
}

/// Starts an agent with the token `secret`. The agent listens until this process ends.
fn guarded() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let alive = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || listen(&listener, Some("secret"), move || Ok(Fake::new(&alive)), |_, _| ()));
    address
}

/// Opens a connection from this address, and sends a hello with this token.
fn hello(from: &str, to: SocketAddr, token: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from.parse().unwrap(), 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let hello = json!({"id": 1, "do": {"hello": {"version": 1, "token": token}}});
    stream.write_all(format!("{hello}\n").as_bytes()).unwrap();
    stream
}

/// Waits for the answer to a hello. Returns whether the token was right.
fn is_right(stream: &TcpStream) -> bool {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let is_wrong = line.contains("wrong token");
    assert!(is_wrong || line.contains("\"done\""), "{line}");
    !is_wrong
}

const US: &str = "127.0.0.1";

/// The delays of docs/agent.md in milliseconds. The first delay is before the first token. Each
/// later delay follows one more wrong token.
const DELAYS: [u64; 6] = [0, 50, 100, 200, 400, 800];

/// The agent waits at least for each delay, on a machine of any speed, because a timer never ends
/// early.
#[test]
fn each_wrong_token_delays_the_next_one_longer() {
    let address = guarded();
    let wait = |token| {
        let begin = Instant::now();
        let is_right = is_right(&hello(US, address, token));
        (is_right, begin.elapsed())
    };
    for delay in DELAYS.map(Duration::from_millis) {
        let (is_right, waited) = wait("wrong");
        assert!(!is_right && waited >= delay, "{waited:?}, of {delay:?} at least");
    }
    // The agent also delays a right token, and then resets the delay. To check the reset, the test
    // sends several wrong tokens, each directly after a right token. At least one answer must
    // arrive soon.
    let (is_right, last) = wait("secret");
    assert!(is_right && last >= Duration::from_secs(1), "{last:?}");
    let fastest = (0..5).map(|_| {
        let (is_right, waited) = wait("wrong");
        assert!(!is_right && wait("secret").0);
        waited
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < last / 2, "{fastest:?} after a right token, {last:?} before it");
}

/// Up to eight connections of one address can wait for a decision. A client that sends several
/// tokens at once does not avoid the delays.
#[test]
fn wrong_tokens_that_arrive_together_are_compared_one_after_the_other() {
    let address = guarded();
    let begin = Instant::now();
    let together: Vec<_> = DELAYS.iter().map(|_| hello(US, address, "wrong")).collect();
    assert!(together.iter().all(|stream| !is_right(stream)));
    let (waited, least) = (begin.elapsed(), Duration::from_millis(DELAYS.iter().sum()));
    assert!(waited >= least, "{waited:?}, of {least:?} at least");
}

/// While a token of one address waits, a token of another address is compared.
#[test]
fn wrong_tokens_delay_no_other_address() {
    let address = guarded();
    for _ in DELAYS {
        assert!(!is_right(&hello(US, address, "wrong")));
    }
    // On a busy machine, an answer can be late without a delay by the agent. So the test makes up
    // to five attempts. One attempt must be fast.
    let is_soon = |_| {
        let begin = Instant::now();
        let waiting = hello(US, address, "wrong");
        assert!(is_right(&hello("127.0.0.2", address, "secret")));
        let other = begin.elapsed();
        assert!(!is_right(&waiting));
        other < begin.elapsed() / 2
    };
    assert!((0..5).any(is_soon), "the other address waited");
}
