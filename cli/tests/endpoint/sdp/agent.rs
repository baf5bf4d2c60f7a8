//! Tests `weft sdp agent`. A shim, which is weft's preload library in a program, normally sends
//! lines to the agent over a UNIX socket. Here the test sends the lines, including lines that a
//! shim never sends.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, SockRef, Socket, Type};

use crate::sdp::connect as connect_by_hand;
use crate::sdp::process::{Listening, WEFT, server};
use crate::skip::skip;

fn start(socket: &Path) -> Listening {
    Listening::start(&["agent", "--socket", socket.to_str().unwrap()])
}

/// Sends one line. Returns the answer.
fn ask(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer.trim_end().to_owned()
}

#[test]
fn a_socket_that_cannot_be_had_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let refused = |socket: &Path| {
        let output = Command::new(WEFT).args(["sdp", "agent", "--socket"]).arg(socket).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    fs::write(at("file"), "something").unwrap();
    for (socket, why) in [
        (at("no/folder"), "its folder does not exist"),
        (at(&"x".repeat(120)), "at most 107 bytes"),
        (at("file"), "not a socket"),
        (folder.path().to_owned(), "not a socket"),
    ] {
        let message = refused(&socket);
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "something");
    let mut agent = start(&at("agent"));
    assert!(refused(&at("agent")).contains("another agent uses this path"));
    // A new agent replaces the socket of a killed agent.
    agent.kill();
    assert!(at("agent").exists());
    let _agent = start(&at("agent"));
    assert_eq!(ask(&at("agent"), "names 127.0.0.1:1 127.0.0.1:2"), "unknown");
}

#[test]
fn a_line_that_is_no_request_gets_an_error_and_the_agent_continues() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let agent = start(&socket);
    let idle = agent.descriptors();
    let long = "names ".repeat(1000);
    for line in ["", "hello", "from 127.0.0.1:5", "connect 127.0.0.1:5", "listen 127.0.0.1:5 sdp", &long, "\u{fffd}\0"]
    {
        assert_eq!(ask(&socket, line), "failed other invalid request", "{line:?}");
    }
    // It is possible that a client disconnects in the middle of a line.
    let mut half = UnixStream::connect(&socket).unwrap();
    half.write_all(b"listen 127.0").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    half.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "failed other invalid request\n");
    drop(half);
    crate::wait::wait_for("its descriptors are closed", || (agent.descriptors() == idle).then_some(()));
    agent.end();
    assert!(!socket.exists());
}

/// Programs such as sshd and nginx listen with two sockets, one for IPv4 and one for IPv6.
#[test]
fn a_program_may_listen_with_a_socket_for_each_family() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    // A port that is probably free for both IPv4 and IPv6.
    let free = || TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port();
    let (first, other) = (free(), free());
    let listen = |ip: &str, sdp: u16, more: &str| ask(&socket, &format!("listen {ip}:80 sdp {ip}:{sdp}{more}"));
    assert_eq!(listen("0.0.0.0", first, ""), "done");
    assert_eq!(listen("[::]", first, " only-v6"), "done");
    assert_eq!(listen("[::]", first, " only-v6"), "done", "once more, as at a reload");
    assert_eq!(listen("[::]", other, " only-v6"), "done");
    assert_eq!(listen("0.0.0.0", other, ""), "done");
    assert!(ask(&socket, &format!("listen 127.0.0.1:81 sdp 0.0.0.0:{other}")).starts_with("failed in-use"));
}

/// A conversation of several lines, as between the shim and the agent.
struct Conversation {
    lines: BufReader<UnixStream>,
    stream: UnixStream,
}

impl Conversation {
    fn begin(socket: &Path, line: &str) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        let mut it = Conversation { lines: BufReader::new(stream.try_clone().unwrap()), stream };
        it.send_line(line);
        it
    }

    fn send_line(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads the agent's next line. Returns the address in it, to which the program must connect.
    fn at(&mut self) -> SocketAddr {
        let line = self.next();
        line.strip_prefix("at ").unwrap_or_else(|| panic!("{line}")).parse().unwrap()
    }
}

/// Starts a connection of a program with a non-blocking socket. Returns the program's socket, whose
/// connection is in progress, and the addresses of both ends.
fn on_its_way(socket: &Path, line: &str) -> (TcpStream, SocketAddr, SocketAddr) {
    let mut shim = Conversation::begin(socket, &format!("{line} no-wait"));
    let at = shim.at();
    let program = Socket::new(Domain::for_address(at), Type::STREAM, None).unwrap();
    program.set_nonblocking(true).unwrap();
    assert_eq!(program.connect(&at.into()).unwrap_err().raw_os_error(), Some(115), "EINPROGRESS");
    let program = TcpStream::from(program);
    let from = program.local_addr().unwrap();
    assert_eq!(program.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
    shim.send_line(&format!("from {from}"));
    (program, from, at)
}

fn wait_for(program: &TcpStream, what: PollFlags) {
    poll(&mut [PollFd::new(program, what)], None).unwrap();
}

/// Starts a proxy in front of a server. Returns the server, its address, and the proxy, which
/// listens at the SDP address.
fn served() -> (TcpListener, String, Listening) {
    let (server, at) = server();
    let to = format!("tcp://{at}");
    let far = Listening::start(&["proxy", "--json", "--listen", "sdp://127.0.0.1:0", "--connect", &to]);
    (server, at, far)
}

#[test]
fn a_program_that_does_not_block_is_connected_when_sdp_is() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let (server, at, far) = served();
    let (mut program, from, here) = on_its_way(&socket, &format!("connect {at} sdp {}", far.at));
    wait_for(&program, PollFlags::OUT);
    assert!(program.take_error().unwrap().is_none());
    assert!(ask(&socket, &format!("names {from} {here}")).ends_with(&format!(" {at}")));
    let (mut served, _) = server.accept().unwrap();
    program.write_all(b"ab").unwrap();
    SockRef::from(&program).send_out_of_band(b"!").unwrap();
    program.write_all(b"c").unwrap();
    wait_for(&served, PollFlags::PRI);
    assert_eq!(SockRef::from(&served).recv_out_of_band(&mut [MaybeUninit::uninit()]).unwrap(), 1);
    let mut got = [0; 3];
    served.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"abc");
    drop(served);
    wait_for(&program, PollFlags::IN);
    assert_eq!(program.read(&mut got).unwrap(), 0);
}

#[test]
fn a_program_that_does_not_block_is_reset_when_sdp_fails() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let (gone, at) = server();
    drop(gone);
    for service in [&at, "[2001:db8::1]:80"] {
        let (program, from, _) = on_its_way(&socket, &format!("connect {service} sdp {at}"));
        assert_eq!(ask(&socket, "why 127.0.0.1:9"), "unknown");
        wait_for(&program, PollFlags::OUT);
        assert_eq!(program.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionReset);
        let why = ask(&socket, &format!("why {from}"));
        assert!(why.starts_with(&format!("failed refused {at}: ")), "{why}");
    }
}

/// A program with a non-blocking socket can continue at once, and gets the result later. So the
/// program does not wait for a peer or a port mapper that is silent.
#[test]
fn a_program_that_does_not_block_does_not_wait_for_silent_ends() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let (silent, at) = server();
    let (program, ..) = on_its_way(&socket, &format!("connect {at} sdp {at}"));
    let (stream, _) = silent.accept().unwrap();
    drop(stream);
    wait_for(&program, PollFlags::OUT);
    assert_eq!(program.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionReset);

    let mapper = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for mapper in [mapper.local_addr().unwrap(), closed] {
        let (server, at) = server();
        let (program, ..) = on_its_way(&socket, &format!("connect {at} pm {mapper}"));
        wait_for(&program, PollFlags::OUT);
        assert!(program.take_error().unwrap().is_none(), "by plain TCP");
        server.accept().unwrap();
    }
    mapper.set_nonblocking(true).unwrap();
    assert!(mapper.recv(&mut [0; 64]).is_ok(), "the silent port mapper was queried");
}

/// The environment variable that is set in the network namespace.
const INSIDE: &str = "WEFT_UNREACHABLE_HOST";
/// Time limit for an answer that needs no network. The limit allows for a busy machine. It is
/// shorter than the two minutes for which the kernel retransmits a SYN.
const AT_ONCE: Duration = Duration::from_secs(20);

/// If there is no route to a host, the program's connection fails at once. The agent reports the
/// reason. The preload library converts this reason to EHOSTUNREACH, which
/// `preload/tests/shim/later.rs` tests.
#[test]
fn a_program_that_does_not_block_is_reset_at_once_if_the_host_is_unreachable() {
    if env::var_os(INSIDE).is_none() {
        return in_a_network_namespace(
            "sdp::agent::a_program_that_does_not_block_is_reset_at_once_if_the_host_is_unreachable",
            "ip link set lo up && ip route add unreachable 192.0.2.0/24 \
             && ip -6 route add unreachable 2001:db8::/32",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    // The first and the third host have a route of type `unreachable`. The second host has no
    // route.
    for host in ["192.0.2.17", "198.51.100.17", "[2001:db8::17]"] {
        for by in ["sdp", "both", "pm"] {
            let line = format!("connect {host}:80 {by} {host}:7080");
            let begin = Instant::now();
            let (program, from, _) = on_its_way(&socket, &line);
            wait_for(&program, PollFlags::OUT);
            assert_eq!(program.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionReset, "{line}");
            let why = ask(&socket, &format!("why {from}"));
            assert!(why.starts_with("failed unreachable "), "{line}: {why}");
            // A program with a blocking socket gets the same error as the result of its call.
            let answer = ask(&socket, &line);
            assert!(answer.starts_with("failed unreachable "), "{line}: {answer}");
            assert!(begin.elapsed() < AT_ONCE, "{line}: {:?}", begin.elapsed());
        }
    }
}

/// Returns how many TCP connections have been started in this network namespace.
fn started_connections() -> u64 {
    let counters = fs::read_to_string("/proc/self/net/snmp").unwrap();
    let mut tcp = counters.lines().filter_map(|line| line.strip_prefix("Tcp: ")).map(str::split_whitespace);
    let (mut names, mut values) = (tcp.next().unwrap(), tcp.next().unwrap());
    values.nth(names.position(|name| name == "ActiveOpens").unwrap()).unwrap().parse().unwrap()
}

/// If no machine on the link has the destination address, the kernel needs 3 s for each connection
/// to detect this. A program with a non-blocking socket does not wait for these 3 s. The agent
/// waits only for the first connection.
///
/// The test checks the order of events instead of their times. The agent's first answer is the
/// address to which the program connects. If the agent waited for the host, its first answer would
/// be the failure. After the failure, the agent starts no more connections to the host.
#[test]
fn an_unreachable_host_delays_no_program_and_is_tried_once() {
    if env::var_os(INSIDE).is_none() {
        return in_a_network_namespace(
            "sdp::agent::an_unreachable_host_delays_no_program_and_is_tried_once",
            // The other end of the link has no address, so it answers no ARP request.
            "ip link set lo up && ip link add near type veth peer name far \
             && ip address add 192.0.2.1/24 dev near && ip link set near up && ip link set far up",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let line = "connect 192.0.2.17:80 sdp 192.0.2.17:7080";
    let (program, from, _) = on_its_way(&socket, line);
    wait_for(&program, PollFlags::OUT);
    assert_eq!(program.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionReset);
    let why = ask(&socket, &format!("why {from}"));
    assert!(why.starts_with("failed unreachable 192.0.2.17:7080: "), "{why}");
    let before = started_connections();
    assert!(before > 0, "the counter counts the connections so far");
    assert_eq!(ask(&socket, line), why);
    assert_eq!(started_connections(), before, "the agent has tried the host again");
    // A non-blocking program also gets the stored failure.
    let (program, from, _) = on_its_way(&socket, line);
    wait_for(&program, PollFlags::OUT);
    assert_eq!(ask(&socket, &format!("why {from}")), why);
}

/// Runs this test again in a network namespace, after the commands of `setup`.
fn in_a_network_namespace(test: &str, setup: &str) {
    const UNSHARE: [&str; 3] = ["--user", "--map-root-user", "--net"];
    let run = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(UNSHARE).args(["sh", "-c", &format!("{setup} && {command}")]).arg(env::current_exe().unwrap());
        unshare.env(INSIDE, "1").stdin(Stdio::null()).output()
    };
    if !run("true").is_ok_and(|can| can.status.success()) {
        return skip("no network namespace with these links and routes for this user, or no iproute2");
    }
    let output = run(&format!("exec \"$0\" --exact {test} --nocapture")).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

/// If a program has bound its socket to a port, the SDP connection also comes from this port.
#[test]
fn sdp_connects_from_the_port_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let (silent, at) = server();
    let source = TcpListener::bind("127.0.0.9:0").unwrap().local_addr().unwrap();
    let _program = on_its_way(&socket, &format!("connect {at} sdp {at} source {source}"));
    assert_eq!(silent.accept().unwrap().1, source);
}

/// The rule for a program is `both` (SDP or TCP), and its socket is blocking. If SDP fails, the
/// program connects by plain TCP.
#[test]
fn both_falls_back_to_plain_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let (gone, nowhere) = server();
    drop(gone);
    let (server, at) = server();
    let mut shim = Conversation::begin(&socket, &format!("connect {at} both {nowhere} source 127.0.0.9:0"));
    let mut program = TcpStream::connect(shim.at()).unwrap();
    shim.send_line(&format!("from {}", program.local_addr().unwrap()));
    assert_eq!(shim.next(), "done");
    let (mut served, from) = server.accept().unwrap();
    assert_eq!(from.ip().to_string(), "127.0.0.9");
    program.write_all(b"plain").unwrap();
    drop(program);
    let mut got = String::new();
    served.read_to_string(&mut got).unwrap();
    assert_eq!(got, "plain");
    // If the requested source address is not available, the agent uses no other address.
    let mut shim = Conversation::begin(&socket, &format!("connect {at} sdp {at} source 192.0.2.1:0"));
    assert!(shim.next().starts_with("failed not-available "));
}

/// Connects like a program with a blocking socket. Returns the answer that the agent sends when the
/// connection is complete.
fn connected(socket: &Path, line: &str) -> String {
    let mut shim = Conversation::begin(socket, line);
    let first = shim.next();
    let Some(at) = first.strip_prefix("at ") else { return first };
    let program = TcpStream::connect(at).unwrap();
    shim.send_line(&format!("from {}", program.local_addr().unwrap()));
    shim.next()
}

/// A port mapper does not answer. This delays the first connection for seconds, but not the next
/// connections.
#[test]
fn a_silent_port_mapper_is_queried_for_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let mapper = UdpSocket::bind("127.0.0.1:0").unwrap();
    mapper.set_nonblocking(true).unwrap();
    let questions = || std::iter::from_fn(|| mapper.recv(&mut [0; 64]).ok()).count();
    let (server, at) = server();
    let line = format!("connect {at} pm {}", mapper.local_addr().unwrap());
    assert_eq!(connected(&socket, &line), "done", "by plain TCP");
    assert!(questions() > 0);
    assert_eq!(connected(&socket, &line), "done", "by plain TCP");
    let refused = connected(&socket, &format!("{line} sdp-only"));
    assert!(refused.starts_with("failed ") && refused.contains("not reachable by SDP"), "{refused}");
    assert_eq!(questions(), 0);
    server.set_nonblocking(true).unwrap();
    assert_eq!(std::iter::from_fn(|| server.accept().ok()).count(), 2);
}

/// An SDP port that accepts connections but never answers also delays only one connection.
#[test]
fn a_silent_sdp_port_is_tried_for_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let _agent = start(&socket);
    let (silent, at) = server();
    let line = format!("connect {at} sdp {at}");
    let why = connected(&socket, &line);
    assert!(why.starts_with("failed "), "{why}");
    assert_eq!(connected(&socket, &line), why);
    silent.set_nonblocking(true).unwrap();
    assert_eq!(std::iter::from_fn(|| silent.accept().ok()).count(), 1);
}

#[test]
fn sdp_listens_at_a_port_that_the_port_mapper_reports() {
    let folder = tempfile::tempdir().unwrap();
    let (without, with) = (folder.path().join("without"), folder.path().join("with"));
    let (server, at) = server();
    let listen = format!("listen {at} sdp 127.0.0.1:0");
    let _agent = start(&without);
    assert!(ask(&without, &listen).starts_with("failed other "));
    let mapper = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let _agent = Listening::start(&["agent", "--socket", with.to_str().unwrap(), "--pm-listen", &mapper]);
    assert_eq!(ask(&with, &listen), "done");
    assert_eq!(ask(&with, &listen), "done", "once more, as at a reload");
    let echo = std::thread::spawn(move || {
        let (mut served, from) = server.accept().unwrap();
        let mut got = Vec::new();
        served.read_to_end(&mut got).unwrap();
        served.write_all(&got).unwrap();
        from
    });
    let came = connect_by_hand(&at, &["--pm", &mapper, "--sdp-only"], b"by name".to_vec());
    assert!(came.status.success() && came.stdout == b"by name", "{came:?}");
    assert_eq!(echo.join().unwrap().ip().to_string(), "127.83.68.80");
}

#[test]
fn a_program_is_run_under_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let (rules, library) = (folder.path().join("rules"), folder.path().join("no-library"));
    let run = |arguments: &[&str]| {
        let mut weft = Command::new(WEFT);
        weft.args(["sdp", "run", "--library"]).arg(&library).args(arguments).env_remove("WEFT_SDP_RULES");
        weft.env_remove("LD_PRELOAD").output().unwrap()
    };
    let rules_file = rules.to_str().unwrap();
    let script = "echo $WEFT_SDP_RULES $LD_PRELOAD $1; exit 7";
    let started = ["--rules", rules_file, "sh", "-c", script, "sh", "--rules"];
    assert_eq!(run(&started).status.code(), Some(2), "no such rules");
    fs::write(&rules, "agent /nowhere").unwrap();
    let ran = run(&started);
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout).trim(),
        format!("{rules_file} {} --rules", library.display()),
        "{ran:?}"
    );
    assert_eq!(run(&["sh"]).status.code(), Some(2), "missing rules");
    // This is an ELF header without program headers. For such a program, the dynamic linker would
    // load no library.
    let fixed = folder.path().join("static");
    fs::write(&fixed, [&b"\x7fELF\x02\x01"[..], &[0; 58]].concat()).unwrap();
    fs::set_permissions(&fixed, fs::Permissions::from_mode(0o755)).unwrap();
    let warned = run(&["--rules", rules_file, fixed.to_str().unwrap()]);
    let lines = String::from_utf8_lossy(&warned.stderr).into_owned();
    assert!(lines.contains(": this program is linked statically, so it does not load the preload"), "{lines}");
    assert_eq!(run(&["--rules", rules_file, "no-such-program"]).status.code(), Some(2));
}
