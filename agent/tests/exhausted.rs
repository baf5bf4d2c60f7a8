//! A host that has no descriptors left, and then no threads: whoever comes is turned away or waits, and the listening goes on. Limits are the whole
//! process's, so this test has one of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests panic as tests do")]

#[allow(unreachable_pub, dead_code, reason = "others use more of it")]
mod session;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use session::{Counter, StandIn};
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
fn a_host_without_descriptors_or_threads_is_listened_on_all_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (say, heard) = channel();
    let carriers = Counter::default();
    // It listens as long as this process lives.
    thread::spawn(move || {
        listen(
            &listener,
            None,
            move || Ok(StandIn::new(&carriers)),
            move |_, ended| drop(say.send(ended.map(|ended| ended.map_err(|why| why.to_string())))),
        )
    });
    assert!(line(&mut tester(address)).contains("\"done\""));
    assert_eq!(heard.recv_timeout(WITHIN), Ok(None));
    assert_eq!(heard.recv_timeout(WITHIN), Ok(Some(Ok(()))));

    // One more descriptor, which is this side's.
    let limit = getrlimit(Resource::Nofile);
    let next = File::open("/dev/null").unwrap().as_raw_fd();
    let most = u64::try_from(next).unwrap() + 1;
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }).unwrap();
    let mut waits = tester(address);
    let told = heard.recv_timeout(WITHIN).unwrap();
    assert!(matches!(&told, Some(Err(why)) if why.contains("os error 24")), "{told:?}");
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(line(&mut waits).contains("\"done\""));

    // Stacks of threads that have ended are used again: these take them.
    let there: Vec<_> = (0..4).map(|_| tester(address)).map(|mut tester| (line(&mut tester), tester)).collect();
    assert!(there.iter().all(|(told, _)| told.contains("\"done\"")), "{there:?}");
    // Room for less than a thread's stack (2 MiB).
    let limit = getrlimit(Resource::As);
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let most = pages * 4096 + (1 << 20);
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum: limit.maximum }).unwrap();
    let turned_away = line(&mut tester(address));
    setrlimit(Resource::As, limit).unwrap();
    drop(there);
    assert!(turned_away.contains("no thread for one more tester"), "{turned_away}");
    assert!(line(&mut tester(address)).contains("\"done\""));
}
