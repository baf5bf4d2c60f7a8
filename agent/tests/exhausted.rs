//! Tests the agent on a host without free descriptors, and then on a host that cannot start
//! threads. The agent rejects new testers or lets them wait, and continues to listen. The test
//! lowers the limits of its process, so this file is a separate test binary.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic in a helper function fails the test")]

#[allow(unreachable_pub, dead_code, reason = "other test binaries use the remaining items")]
mod session;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use session::{Counter, FakeDevice};
use weft_agent::listen::listen;

const HELLO: &[u8] = b"{\"id\":1,\"do\":{\"hello\":{\"version\":1}}}\n";
const WITHIN: Duration = Duration::from_secs(60);

fn tester(address: SocketAddr) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    stream.write_all(HELLO).unwrap();
    BufReader::new(stream)
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

#[test]
fn keeps_listening_without_descriptors_or_threads() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (ends, received) = channel();
    let backends = Counter::default();
    // The agent listens until this process ends.
    thread::spawn(move || {
        listen(
            &listener,
            None,
            move || Ok(FakeDevice::new(&backends)),
            move |_, ended| drop(ends.send(ended.map(|ended| ended.map_err(|why| why.to_string())))),
        )
    });
    assert!(line(&mut tester(address)).contains("\"done\""));
    assert_eq!(received.recv_timeout(WITHIN), Ok(None));
    assert_eq!(received.recv_timeout(WITHIN), Ok(Some(Ok(()))));

    // Allow one more descriptor. The test's side of the connection uses it.
    let limit = getrlimit(Resource::Nofile);
    let next = File::open("/dev/null").unwrap().as_raw_fd();
    let most = u64::try_from(next).unwrap() + 1;
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }).unwrap();
    let mut waits = tester(address);
    let ended = received.recv_timeout(WITHIN).unwrap();
    assert!(matches!(&ended, Some(Err(why)) if why.contains("os error 24")), "{ended:?}");
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(line(&mut waits).contains("\"done\""));

    // The agent has one thread for each tester. A new thread can reuse the stack of an ended
    // thread, and then needs no more address space. So these four testers first use up such stacks.
    let there: Vec<_> = (0..4).map(|_| tester(address)).map(|mut tester| (line(&mut tester), tester)).collect();
    assert!(there.iter().all(|(answer, _)| answer.contains("\"done\"")), "{there:?}");
    // The stack of a thread needs 2 MiB of address space. Allow less.
    let limit = getrlimit(Resource::As);
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let most = pages * 4096 + (1 << 20);
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum: limit.maximum }).unwrap();
    let turned_away = line(&mut tester(address));
    setrlimit(Resource::As, limit).unwrap();
    drop(there);
    assert!(turned_away.contains("cannot start a thread for one more tester"), "{turned_away}");
    assert!(line(&mut tester(address)).contains("\"done\""));
}
