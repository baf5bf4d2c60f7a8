//! Control connections that mean harm, or break: made up by seed, cut off at each octet, and over TCP.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests panic as tests do")]

#[allow(unreachable_pub, reason = "the fuzz target has it, too")]
mod session;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use session::{Counter, StandIn, play, play_soft};
use weft_agent::listen::{MOST_TESTERS, listen};
use weft_agent::protocol::{Action, Done, Event, Failure, LONGEST_LINE, Outcome, Told, What};
use weft_agent::serve::{Carrier, Ended};

/// Two tests measure this process: its memory, or its descriptors and threads. `cargo test` runs all
/// tests of this file in one process, so the two run while no other test does.
static MEASURED: RwLock<()> = RwLock::new(());

/// For a test that measures the process.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MEASURED.write().unwrap_or_else(PoisonError::into_inner)
}

/// For every other test.
fn beside() -> RwLockReadGuard<'static, ()> {
    MEASURED.read().unwrap_or_else(PoisonError::into_inner)
}

const TOKEN: &str = "secret";
const HELLO: &str = r#"{"id":1,"do":{"hello":{"version":1,"token":"secret"}}}"#;

/// One of each kind, right as they stand.
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

/// What stands where something else was.
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

/// A small source of numbers: the same for a seed each time.
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

    /// All that a tester says.
    fn said(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        if self.below(8) > 0 {
            said.extend_from_slice(HELLO.as_bytes());
            said.push(b'\n');
        }
        for _ in 0..self.below(24) {
            let mut line = REQUESTS[self.below(REQUESTS.len())].as_bytes().to_vec();
            for _ in 0..self.below(4) {
                self.mutated(&mut line);
            }
            if self.below(16) == 0 {
                line = (0..self.below(200)).map(|_| u8::try_from(self.below(256)).unwrap()).collect();
            }
            said.extend_from_slice(&line);
            said.push(b'\n');
        }
        let kept = said.len() - if self.below(2) == 0 { self.below(said.len() + 1) } else { 0 };
        said.truncate(kept);
        said
    }
}

#[test]
fn whatever_is_said_is_answered_line_by_line_and_leaves_nothing() {
    let _beside = beside();
    for seed in 0..2000 {
        let mut numbers = Numbers(seed);
        let said = numbers.said();
        let most = [1, 7, 100, 1 << 16][numbers.below(4)];
        let played = std::panic::catch_unwind(|| {
            let mut numbers = Numbers(!seed);
            play(&said, || 1 + numbers.below(most), Some(TOKEN));
            play_soft(&said, || 1 + numbers.below(most), Some(TOKEN));
        });
        assert!(played.is_ok(), "seed {seed}: {}", String::from_utf8_lossy(&said));
    }
}

/// What the fuzz target `agent` found worth keeping, and what broke it.
#[test]
fn the_corpus_is_answered_and_leaves_nothing() {
    let _beside = beside();
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = 0;
    for file in std::fs::read_dir(corpus).unwrap() {
        let said = std::fs::read(file.unwrap().path()).unwrap();
        for most in [1, 7, usize::MAX] {
            play(&said, || most, Some(TOKEN));
            play_soft(&said, || most, Some(TOKEN));
        }
        files += 1;
    }
    assert!(files > 0, "no corpus");
}

/// The corpus goes as far as a connection does.
#[test]
fn the_corpus_connects_the_software_rnic_to_itself() {
    let _beside = beside();
    let told = play_soft(include_bytes!("corpus/connected"), || usize::MAX, Some(TOKEN));
    let told = String::from_utf8(told).unwrap();
    let count = |what: &str| told.matches(what).count();
    // Write, Read, Send, receive, bind.
    assert_eq!((count("\"established\""), count("\"status\":\"success\""), count("\"failed\"")), (2, 5, 0), "{told}");
}

#[test]
fn a_tester_may_go_at_each_octet() {
    let _beside = beside();
    let said = [&[HELLO], &REQUESTS[..]].concat().join("\n") + "\n";
    for length in 0..=said.len() {
        play(&said.as_bytes()[..length], || usize::MAX, Some(TOKEN));
    }
    // Each octet by itself.
    play(said.as_bytes(), || 1, Some(TOKEN));
}

/// The id of each answer, and whether the request was performed.
fn answers(told: &[u8]) -> Vec<(Option<u64>, bool)> {
    let lines = told.split(|octet| *octet == b'\n').filter(|line| !line.is_empty());
    let answer = |line| match serde_json::from_slice::<Told>(line).unwrap().what {
        What::Answer { id, outcome } => Some((id, matches!(outcome, Outcome::Done(_)))),
        What::Event(_) => None,
    };
    lines.filter_map(answer).collect()
}

/// docs/agent.md: the hello has at most 4,096 octets, a line 1,048,576 with its line feed. A longer one ends the connection.
#[test]
fn lengths_at_their_limits() {
    let _beside = beside();
    let padded = |line: &str, length: usize| line.to_owned() + &" ".repeat(length - line.len());
    let refused = (None, false);
    for hello in [4095, 4096, 4097] {
        let expected = if hello <= 4096 { vec![(Some(1), true), (Some(2), true)] } else { vec![refused] };
        for piece in [1, 4096, 1 << 16] {
            let said = format!("{}\n{}\n", padded(HELLO, hello), REQUESTS[0]);
            let told = play(said.as_bytes(), || piece, Some(TOKEN));
            assert_eq!(answers(&told), expected, "a hello of {hello} octets, {piece} at a time");
        }
    }
    for line in [LONGEST_LINE - 2, LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1] {
        for piece in [4093, 1 << 16] {
            let said = format!("{HELLO}\n{}\n{}\n", padded(REQUESTS[0], line), REQUESTS[2]);
            let told = play(said.as_bytes(), || piece, Some(TOKEN));
            let expected = if line < 1_048_576 {
                vec![(Some(1), true), (Some(2), true), (Some(4), true)]
            } else {
                vec![(Some(1), true), refused]
            };
            assert_eq!(answers(&told), expected, "a line of {line} octets, {piece} at a time");
        }
    }
}

/// Octets of this process that were resident at most.
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
        // A name that would be told in six characters for each of its own.
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
    let said = format!("{HELLO}\n{}\n", lines.join("\n"));
    let before = most_resident();
    play(said.as_bytes(), || 1 << 16, Some(TOKEN));
    // What is played and the list of it take none any more; a line, what is read of it (twice its length: a part of 24 characters takes
    // 40 octets) and what a growing list leaves behind do.
    let more = most_resident().saturating_sub(before);
    assert!(more < 16 << 20, "{more} octets for lines of {LONGEST_LINE}");
}

/// What is told about a tester: its beginning is `None`.
type Heard = Receiver<Option<Result<(), Ended>>>;

fn listening<C: Carrier + 'static>(carrier: impl Fn() -> C + Send + Sync + 'static) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (say, heard) = channel();
    // It listens as long as this process lives.
    thread::spawn(move || listen(&listener, Some(TOKEN), move || Ok(carrier()), move |_, ended| drop(say.send(ended))));
    (address, heard)
}

/// The end that is told next.
fn next_end(heard: &Heard) -> Result<(), Ended> {
    loop {
        if let Some(ended) = heard.recv_timeout(Duration::from_secs(60)).unwrap() {
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
fn testers_that_vanish_leave_their_places_and_objects() {
    let _beside = beside();
    let counter = Counter::default();
    let carriers = counter.clone();
    let (address, heard) = listening(move || StandIn::new(&carriers));
    let domain = format!("{}\n", REQUESTS[0]);
    let said: [&[u8]; 5] = [b"", b"{\"id\":2,", domain.as_bytes(), b"\xff\n", &[b'['; 70_000]];
    for said in said {
        // With FIN, and with a reset, more than there are places.
        for reset in [false, true] {
            for _ in 0..=MOST_TESTERS {
                let mut tester = tester(address);
                assert!(line(&mut tester).contains("\"done\""));
                tester.get_mut().write_all(said).unwrap();
                if reset {
                    socket2::SockRef::from(tester.get_ref()).set_linger(Some(Duration::ZERO)).unwrap();
                }
                drop(tester);
                match next_end(&heard) {
                    Ok(()) => assert!(!reset),
                    Err(Ended::Io(_)) => {}
                    Err(other) => panic!("{other}"),
                }
                let now = counter.now();
                assert_eq!((now.carriers, now.objects), (0, 0));
            }
        }
    }
    counter.expect_gone(said.len() * 2 * (MOST_TESTERS + 1));
}

#[test]
fn a_thousand_who_come_and_say_nothing_right_leave_nothing() {
    let _alone = alone();
    let counter = Counter::default();
    let carriers = counter.clone();
    let (address, heard) = listening(move || StandIn::new(&carriers));
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = (descriptors(), threads());
    let wrong = HELLO.replace("secret", "Secret") + "\n";
    let said: [&[u8]; 5] = [b"", HELLO.as_bytes(), wrong.as_bytes(), b"GET / HTTP/1.1\r\n\r\n", &[b'['; 5000]];
    for _ in 0..50 {
        // More than there are places.
        for index in 0..20 {
            let mut stream = TcpStream::connect(address).unwrap();
            // Who is turned away may not be there any more.
            let _ = stream.write_all(said[index % said.len()]);
        }
        (0..20).for_each(|_| drop(next_end(&heard)));
    }
    assert!(line(&mut tester(address)).contains("\"done\""));
    next_end(&heard).unwrap();
    counter.expect_gone(1);
    // A thread may be about to end.
    assert!(descriptors() <= before.0 + 1 && threads() <= before.1 + MOST_TESTERS, "{before:?}");
}

/// Breaks when it is told to disconnect.
struct Brittle(StandIn);

impl Carrier for Brittle {
    fn perform(&mut self, action: Action) -> Result<Done, Failure> {
        assert!(!matches!(action, Action::Disconnect { .. }), "as told");
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
fn a_thread_that_breaks_gives_its_place_and_objects_back() {
    let _beside = beside();
    let counter = Counter::default();
    let carriers = counter.clone();
    let (address, _heard) = listening(move || Brittle(StandIn::new(&carriers)));
    for _ in 0..=MOST_TESTERS {
        let mut tester = tester(address);
        assert!(line(&mut tester).contains("\"done\""));
        tester
            .get_mut()
            .write_all(b"{\"id\":2,\"do\":\"domain\"}\n{\"id\":3,\"do\":{\"disconnect\":{\"connection\":1}}}\n")
            .unwrap();
        let mut told = String::new();
        tester.read_to_string(&mut told).unwrap();
        assert!(told.contains("\"domain\"") && !told.contains("\"id\":3"), "{told}");
    }
    counter.expect_gone(MOST_TESTERS + 1);
}
