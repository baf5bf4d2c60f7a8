//! Helper functions for the tests of `weft sdp`. They start processes, join two proxies, and
//! connect TCP programs on both sides of the proxies.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::wait::LONG;

pub(crate) const WEFT: &str = env!("CARGO_BIN_EXE_weft");

/// A listening process. It is killed at the end of the test.
pub(crate) struct Listening {
    pub(crate) process: Child,
    pub(crate) lines: std::io::Lines<BufReader<ChildStdout>>,
    /// The address of its listener: `127.0.0.1:PORT`.
    pub(crate) at: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Listening {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(WEFT)
            .arg("sdp")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let at = first.rsplit(['/', ' ']).next().unwrap().to_owned();
        Listening { process, lines, at }
    }

    /// Returns the next output line as JSON.
    pub(crate) fn next_report(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Kills the process like `kill -9`. The process prints no more lines and does not close its
    /// connections itself.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Returns the number of open descriptors of the process.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }

    /// Returns the maximum resident memory of the process in KiB.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn signal(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Stops the process with the signal that an init system sends. Returns the exit status.
    pub(crate) fn interrupted(mut self) -> ExitStatus {
        self.signal();
        self.process.wait().unwrap()
    }

    /// Stops the process with the signal that an init system sends. Returns the remaining output as
    /// JSON.
    pub(crate) fn terminate(self) -> Vec<Value> {
        self.end().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Stops the process with the signal that an init system sends. Returns the remaining output
    /// lines.
    pub(crate) fn end(mut self) -> Vec<String> {
        self.signal();
        let rest = self.lines.by_ref().map(Result::unwrap).collect();
        assert!(self.process.wait().unwrap().success());
        rest
    }
}

/// Starts two proxies in front of `server`: one from TCP to SDP, and one from SDP to TCP.
pub(crate) fn proxies(server: &str, options: &[&str]) -> (Listening, Listening) {
    let to = format!("tcp://{server}");
    let listen = ["proxy", "--json", "--listen", "sdp://127.0.0.1:0", "--connect", &to];
    let far = Listening::start(&[&listen[..], options].concat());
    let to = format!("sdp://{}", far.at);
    let listen = ["proxy", "--json", "--listen", "tcp://127.0.0.1:0", "--connect", &to];
    let near = Listening::start(&[&listen[..], options].concat());
    (near, far)
}

pub(crate) fn server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    (listener, at)
}

/// Opens a connection through both proxies. Returns the stream of the client and the stream of the
/// server.
pub(crate) fn through(near: &Listening, server: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(&near.at).unwrap();
    (client, server.accept().unwrap().0)
}

/// Opens a connection through both proxies, and sends a byte in each direction. After that, both
/// proxies have accepted the connection.
pub(crate) fn open(near: &Listening, server: &TcpListener) -> (TcpStream, TcpStream) {
    let (mut client, mut served) = through(near, server);
    let mut octet = [0];
    client.write_all(&[1]).unwrap();
    served.read_exact(&mut octet).unwrap();
    served.write_all(&octet).unwrap();
    client.read_exact(&mut octet).unwrap();
    (client, served)
}

pub(crate) fn octets(len: u32) -> Vec<u8> {
    (0..len).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect()
}

/// Closes the stream with a reset.
pub(crate) fn reset(stream: TcpStream) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        stream.set_zero_linger().unwrap();
    });
}

pub(crate) fn read_error(mut stream: TcpStream) -> ErrorKind {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap_err().kind()
}

/// Writes until all buffers are full, and returns the number of written bytes. The kernel's table
/// shows that the buffers are full: neither the proxy of the client nor the program that does not
/// read accepts more bytes.
pub(crate) fn fill(client: &TcpStream, served: &TcpStream, piece: &[u8]) -> usize {
    let names = |stream: &TcpStream| (stream.local_addr().unwrap().port(), stream.peer_addr().unwrap().port());
    let ((near, far), (program, proxy)) = (names(client), names(served));
    client.set_nonblocking(true).unwrap();
    let (mut sent, begin) = (0, Instant::now());
    loop {
        assert!(begin.elapsed() < LONG, "the windows do not close: {sent} bytes went");
        match (&mut &*client).write(&piece[sent % piece.len()..]) {
            Ok(written) => sent += written,
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            Err(_) if has_timer(near, far, PROBE) && has_timer(proxy, program, PROBE) => break,
            Err(_) => std::thread::yield_now(),
        }
    }
    client.set_nonblocking(false).unwrap();
    sent
}

/// Kinds of timers in the kernel's table of TCP connections: the keep-alive timer, and the timer
/// for probes of a closed window.
pub(crate) const KEEP_ALIVE: &str = "02:";
const PROBE: &str = "04:";

/// Returns whether this timer runs for the socket with these ports.
pub(crate) fn has_timer(local: u16, remote: u16, timer: &str) -> bool {
    let ports = [format!(":{local:04X}"), format!(":{remote:04X}")];
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
    table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|columns| {
        columns[1].ends_with(&ports[0]) && columns[2].ends_with(&ports[1]) && columns[5].starts_with(timer)
    })
}
