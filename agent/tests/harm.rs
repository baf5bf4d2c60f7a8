//! Tests control connections of testers that are hostile or broken. Some inputs are generated from
//! a seed. One input is cut off after each of its bytes. Some connections use TCP.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic in a helper function fails the test")]

#[allow(unreachable_pub, reason = "the fuzz target includes this module, too")]
mod session;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use session::{Counter, FakeDevice, play, play_soft};
use weft_agent::listen::{MAX_TESTERS, listen};
use weft_agent::protocol::{Action, AgentMessage, Event, Failure, LONGEST_LINE, MessageContent, Outcome, Success};
use weft_agent::serve::{Backend, ServeError};

/// Two tests measure this process: one measures its memory, the other its descriptors and threads.
/// `cargo test` runs all tests of this file in one process, so no other test is allowed to run at
/// the same time as one of these two.
static MEASURED: RwLock<()> = RwLock::new(());

/// Takes the lock for a test that measures this process. No other test runs while the lock is held.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MEASURED.write().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the lock for a test that does not measure this process. Several such tests can run at the
/// same time.
fn beside() -> RwLockReadGuard<'static, ()> {
    MEASURED.read().unwrap_or_else(PoisonError::into_inner)
}

const TOKEN: &str = "secret";
const HELLO: &str = r#"{"id":1,"do":{"hello":{"version":1,"token":"secret"}}}"#;

/// Valid requests, one of each kind.
const REQUESTS: [&str; 25] = [
    r#"{"id":2,"do":"domain"}"#,
    r#"{"id":3,"do":"device"}"#,
    r#"{"id":4,"do":{"register":{"domain":1,"octets":4096,"access":["local_write","remote_write","remote_read","bind","zero_based"]}}}"#,
    r#"{"id":5,"do":{"put":{"region":2,"offset":16,"octets":"00ff10"}}}"#,
    r#"{"id":6,"do":{"get":{"region":2,"offset":16,"length":3}}}"#,
    r#"{"id":7,"do":{"fill":{"region":2,"offset":0,"length":4096,"seed":7}}}"#,
    r#"{"id":8,"do":{"hash":{"region":2,"length":4096}}}"#,
    r#"{"id":9,"do":{"window":{"domain":1,"posted":true}}}"#,
    r#"{"id":10,"do":{"shared":{"domain":1,"depth":16,"parts":1}}}"#,
    r#"{"id":11,"do":{"listen":{"address":"::1","port":0,"backlog":16}}}"#,
    r#"{"id":12,"do":{"resolve":{"address":"192.0.2.17","port":7174}}}"#,
    r#"{"id":13,"do":{"pair":{"connection":3,"domain":1,"shared":null,"depth":16,"parts":4,"inline":64}}}"#,
    r#"{"id":14,"do":{"connect":{"connection":3,"private_data":"686f","ird":4,"ord":4}}}"#,
    r#"{"id":15,"do":{"accept":{"connection":3}}}"#,
    r#"{"id":16,"do":{"reject":{"connection":3,"private_data":"6e6f"}}}"#,
    r#"{"id":17,"do":{"post_receive":{"on":3,"work":1,"parts":[{"region":2,"offset":0,"length":16,"key":1}]}}}"#,
    r#"{"id":18,"do":{"post_send":{"connection":3,"work":2,"operation":{"send":{"solicited":true,"invalidate":256}},"parts":[{"region":2,"length":16}],"inline":true}}}"#,
    r#"{"id":19,"do":{"post_send":{"connection":3,"work":3,"operation":{"write":{"address":18446744073709551615,"key":4294967295}},"fence":true,"signaled":false}}}"#,
    r#"{"id":20,"do":{"post_send":{"connection":3,"work":4,"operation":{"bind":{"window":4,"region":2,"offset":1,"length":2,"access":["remote_read"]}}}}}"#,
    r#"{"id":21,"do":{"disconnect":{"connection":3}}}"#,
    r#"{"id":22,"do":{"destroy":{"object":2}}}"#,
    r#"{"id":23,"do":{"post_send":{"connection":3,"work":5,"operation":{"invalidate":{"key":256}}}}}"#,
    r#"{"id":24,"do":{"limit":{"shared":5,"receives":2}}}"#,
    r#"{"id":25,"do":{"post_send":{"connection":3,"work":6,"operation":{"fetch_add":{"address":64,"key":1,"add":1}},"parts":[{"region":2,"length":8}]}}}"#,
    r#"{"id":26,"do":{"post_send":{"connection":3,"work":7,"operation":{"compare_swap":{"address":64,"key":1,"compare":1,"swap":2}}}}}"#,
];

/// The generator replaces a part of a line with one of these texts.
const SPLICED: [&[u8]; 18] = [
    b"18446744073709551615",
    b"18446744073709551616",
    b"4294967296",
    b"-1",
    b"1e999",
    b"0.5",
    b"null",
    b"true",
    b"\"\"",
    b"\"\\ud800\"",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\0",
    b"\xff\xfe",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\xe2\x80\xa8",
];

/// A small random number generator. The same seed always gives the same numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ z >> 31) % bound as u64).unwrap()
    }

    fn mutated(&mut self, line: &mut Vec<u8>) {
        let at = self.below(line.len() + 1);
        let end = (at + self.below(24)).min(line.len());
        match self.below(6) {
            0 => drop(line.drain(at..end)),
            1 => drop(line.splice(at..end, SPLICED[self.below(SPLICED.len())].iter().copied())),
            2 => {
                let again = line[at..end].to_vec();
                drop(line.splice(at..at, again));
            }
            3 => line.truncate(at),
            4 if at < line.len() => line[at] ^= 1 << self.below(8),
            _ => {
                let other = REQUESTS[self.below(REQUESTS.len())].as_bytes();
                drop(line.splice(at.., other[at.min(other.len())..].iter().copied()));
            }
        }
    }

    /// Returns all bytes that a tester sends.
    fn input(&mut self) -> Vec<u8> {
        let mut input = Vec::new();
        if self.below(8) > 0 {
            input.extend_from_slice(HELLO.as_bytes());
            input.push(b'\n');
        }
        for _ in 0..self.below(24) {
            let mut line = REQUESTS[self.below(REQUESTS.len())].as_bytes().to_vec();
            for _ in 0..self.below(4) {
                self.mutated(&mut line);
            }
            if self.below(16) == 0 {
                line = (0..self.below(200)).map(|_| u8::try_from(self.below(256)).unwrap()).collect();
            }
            input.extend_from_slice(&line);
            input.push(b'\n');
        }
        let kept = input.len() - if self.below(2) == 0 { self.below(input.len() + 1) } else { 0 };
        input.truncate(kept);
        input
    }
}

#[test]
fn answers_each_line_and_frees_everything() {
    let _beside = beside();
    for seed in 0..2000 {
        let mut numbers = Numbers(seed);
        let input = numbers.input();
        let most = [1, 7, 100, 1 << 16][numbers.below(4)];
        let played = std::panic::catch_unwind(|| {
            let mut numbers = Numbers(!seed);
            play(&input, || 1 + numbers.below(most), Some(TOKEN));
            play_soft(&input, || 1 + numbers.below(most), Some(TOKEN));
        });
        assert!(played.is_ok(), "seed {seed}: {}", String::from_utf8_lossy(&input));
    }
}

/// Plays the inputs that the fuzz target `agent` stored, and inputs that made earlier versions of
/// the agent fail.
#[test]
fn the_corpus_is_answered_and_frees_everything() {
    let _beside = beside();
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = 0;
    for file in std::fs::read_dir(corpus).unwrap() {
        let input = std::fs::read(file.unwrap().path()).unwrap();
        for most in [1, 7, usize::MAX] {
            play(&input, || most, Some(TOKEN));
            play_soft(&input, || most, Some(TOKEN));
        }
        files += 1;
    }
    assert!(files > 0, "no corpus");
}

/// One input of the corpus opens a connection and transfers data.
#[test]
fn the_corpus_connects_the_software_rnic_to_itself() {
    let _beside = beside();
    let answers = play_soft(include_bytes!("corpus/connected"), || usize::MAX, Some(TOKEN));
    let answers = String::from_utf8(answers).unwrap();
    let count = |what: &str| answers.matches(what).count();
    // The five successes are a Write, a Read, a Send, a receive and a bind.
    assert_eq!(
        (count("\"established\""), count("\"status\":\"success\""), count("\"failed\"")),
        (2, 5, 0),
        "{answers}"
    );
}

#[test]
fn a_tester_may_disconnect_after_each_octet() {
    let _beside = beside();
    let input = [&[HELLO], &REQUESTS[..]].concat().join("\n") + "\n";
    for length in 0..=input.len() {
        play(&input.as_bytes()[..length], || usize::MAX, Some(TOKEN));
    }
    // Each byte arrives separately.
    play(input.as_bytes(), || 1, Some(TOKEN));
}

/// Returns the id of each answer, and whether the request succeeded.
fn answers(output: &[u8]) -> Vec<(Option<u64>, bool)> {
    let lines = output.split(|octet| *octet == b'\n').filter(|line| !line.is_empty());
    let answer = |line| match serde_json::from_slice::<AgentMessage>(line).unwrap().what {
        MessageContent::Answer { id, outcome } => Some((id, matches!(outcome, Outcome::Done(_)))),
        MessageContent::Event(_) => None,
    };
    lines.filter_map(answer).collect()
}

/// docs/agent.md sets two limits. A hello has at most 4,096 bytes without its line feed. A line has
/// at most 1,048,576 bytes with its line feed. A longer line ends the connection.
#[test]
fn lengths_at_their_limits() {
    let _beside = beside();
    let padded = |line: &str, length: usize| line.to_owned() + &" ".repeat(length - line.len());
    let refused = (None, false);
    for hello in [4095, 4096, 4097] {
        let expected = if hello <= 4096 { vec![(Some(1), true), (Some(2), true)] } else { vec![refused] };
        for piece in [1, 4096, 1 << 16] {
            let input = format!("{}\n{}\n", padded(HELLO, hello), REQUESTS[0]);
            let output = play(input.as_bytes(), || piece, Some(TOKEN));
            assert_eq!(answers(&output), expected, "a hello of {hello} bytes, {piece} at a time");
        }
    }
    for line in [LONGEST_LINE - 2, LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1] {
        for piece in [4093, 1 << 16] {
            let input = format!("{HELLO}\n{}\n{}\n", padded(REQUESTS[0], line), REQUESTS[2]);
            let output = play(input.as_bytes(), || piece, Some(TOKEN));
            let expected = if line < 1_048_576 {
                vec![(Some(1), true), (Some(2), true), (Some(4), true)]
            } else {
                vec![(Some(1), true), refused]
            };
            assert_eq!(answers(&output), expected, "a line of {line} bytes, {piece} at a time");
        }
    }
}

/// Maximum resident memory of this process, in bytes.
fn most_resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn the_longest_lines_take_little_memory_and_short_answers() {
    let _alone = alone();
    let filled = |before: &str, with: &str, after: &str| {
        let times = (LONGEST_LINE - 1 - before.len() - after.len()) / with.len();
        [before, &with.repeat(times), after].concat()
    };
    let lines = [
        filled("", "[", ""),
        filled("", "{\"a\":", ""),
        filled("{\"id\":1,\"do\":", "[", ""),
        // A name in which each character is escaped as six characters.
        filled("{\"id\":1,\"do\":\"", "\\u0001", "\"}"),
        filled("{\"id\":1,\"do\":{\"", "\u{1f980}", "\":1}}"),
        filled("{\"id\":", "9", "}"),
        filled(
            "{\"id\":1,\"do\":{\"post_receive\":{\"on\":1,\"work\":1,\"parts\":[{\"region\":1,\"length\":1}",
            ",{\"region\":1,\"length\":1}",
            "]}}}",
        ),
        filled("{\"id\":1,\"do\":{\"register\":{\"domain\":1,\"octets\":9,\"access\":[\"bind\"", ",\"bind\"", "]}}}"),
        filled("{\"id\":1,\"do\":{\"put\":{\"region\":1,\"octets\":\"", "00", "\"}}}"),
        filled("{\"id\":1,\"do\":{\"listen\":{\"port\":1,\"address\":\"", "1", "\"}}}"),
    ];
    let input = format!("{HELLO}\n{}\n", lines.join("\n"));
    let before = most_resident();
    play(input.as_bytes(), || 1 << 16, Some(TOKEN));
    // From here on, the test itself uses no more memory. The agent uses memory for a line, for the
    // values in the line, and for the old copies of a growing list. The values need about as much
    // memory as the line: a part of a work request has 24 characters, and its value has 24 bytes.
    let more = most_resident().saturating_sub(before);
    assert!(more < 16 << 20, "{more} bytes for lines of {LONGEST_LINE}");
}

/// Receives two reports about each tester: `None` when its service begins, and the result when its
/// service ends.
type Ends = Receiver<Option<Result<(), ServeError>>>;

fn listening<C: Backend + 'static>(backend: impl Fn() -> C + Send + Sync + 'static) -> (SocketAddr, Ends) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (ends, received) = channel();
    // The agent listens until this process ends.
    thread::spawn(move || {
        listen(&listener, Some(TOKEN), move || Ok(backend()), move |_, ended| drop(ends.send(ended)))
    });
    (address, received)
}

/// Returns the next reported result.
fn next_end(received: &Ends) -> Result<(), ServeError> {
    loop {
        if let Some(ended) = received.recv_timeout(Duration::from_secs(60)).unwrap() {
            return ended;
        }
    }
}

fn tester(address: SocketAddr) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(format!("{HELLO}\n").as_bytes()).unwrap();
    BufReader::new(stream)
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

#[test]
fn testers_that_vanish_free_their_slots_and_objects() {
    let _beside = beside();
    let counter = Counter::default();
    let backends = counter.clone();
    let (address, received) = listening(move || FakeDevice::new(&backends));
    let domain = format!("{}\n", REQUESTS[0]);
    let inputs: [&[u8]; 5] = [b"", b"{\"id\":2,", domain.as_bytes(), b"\xff\n", &[b'['; 70_000]];
    for octets in inputs {
        // In each of two rounds, the number of testers that disconnect exceeds the limit. In the
        // first round they send FIN, and in the second round RST.
        for reset in [false, true] {
            for _ in 0..=MAX_TESTERS {
                let mut tester = tester(address);
                assert!(line(&mut tester).contains("\"done\""));
                tester.get_mut().write_all(octets).unwrap();
                if reset {
                    socket2::SockRef::from(tester.get_ref()).set_linger(Some(Duration::ZERO)).unwrap();
                }
                drop(tester);
                match next_end(&received) {
                    Ok(()) => assert!(!reset),
                    Err(ServeError::Io(_)) => {}
                    Err(other) => panic!("{other}"),
                }
                let now = counter.now();
                assert_eq!((now.backends, now.objects), (0, 0));
            }
        }
    }
    counter.expect_gone(inputs.len() * 2 * (MAX_TESTERS + 1));
}

#[test]
fn a_thousand_invalid_testers_leave_no_resources() {
    let _alone = alone();
    let counter = Counter::default();
    let backends = counter.clone();
    let (address, received) = listening(move || FakeDevice::new(&backends));
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = (descriptors(), threads());
    let wrong = HELLO.replace("secret", "Secret") + "\n";
    let inputs: [&[u8]; 5] = [b"", HELLO.as_bytes(), wrong.as_bytes(), b"GET / HTTP/1.1\r\n\r\n", &[b'['; 5000]];
    for _ in 0..50 {
        // Open more connections than the limit for testers.
        for index in 0..20 {
            let mut stream = TcpStream::connect(address).unwrap();
            // The write fails if the agent has already closed this connection.
            let _ = stream.write_all(inputs[index % inputs.len()]);
        }
        (0..20).for_each(|_| drop(next_end(&received)));
    }
    assert!(line(&mut tester(address)).contains("\"done\""));
    next_end(&received).unwrap();
    counter.expect_gone(1);
    // It is possible that some threads have not ended completely yet.
    assert!(descriptors() <= before.0 + 1 && threads() <= before.1 + MAX_TESTERS, "{before:?}");
}

/// A backend that panics when it receives a disconnect request.
struct Brittle(FakeDevice);

impl Backend for Brittle {
    fn perform(&mut self, action: Action) -> Result<Success, Failure> {
        assert!(!matches!(action, Action::Disconnect { .. }), "the request to disconnect");
        self.0.perform(action)
    }

    fn events(&mut self) -> Vec<Event> {
        self.0.events()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.descriptors()
    }
}

#[test]
fn a_panicking_thread_frees_its_slot_and_objects() {
    let _beside = beside();
    let counter = Counter::default();
    let backends = counter.clone();
    let (address, _received) = listening(move || Brittle(FakeDevice::new(&backends)));
    for _ in 0..=MAX_TESTERS {
        let mut tester = tester(address);
        assert!(line(&mut tester).contains("\"done\""));
        tester
            .get_mut()
            .write_all(b"{\"id\":2,\"do\":\"domain\"}\n{\"id\":3,\"do\":{\"disconnect\":{\"connection\":1}}}\n")
            .unwrap();
        let mut answers = String::new();
        tester.read_to_string(&mut answers).unwrap();
        assert!(answers.contains("\"domain\"") && !answers.contains("\"id\":3"), "{answers}");
    }
    counter.expect_gone(MAX_TESTERS + 1);
}
