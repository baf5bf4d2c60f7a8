//! Makes a target connect to the tester. A target inside weft's process starts automatically. A
//! task, a command or a person starts any other target.
//!
//! Each connection needs a new start. [`crate::stage`] decides when to start and how long to wait
//! for the connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::AbortHandle;
use weft_peer::driver::portmap::{Mapped, PmClient, connect};
use weft_peer::driver::sdp::{SdpSettings, SdpStream};
use weft_peer::driver::{Device, LinkListener};
use weft_peer::portmap::Resolution;
use weft_peer::verbs::{Node, RnicSettings};
use weft_peer::{Deviations, Settings};

use super::Service;

/// Placeholders in a command line. The first two are replaced by the address to connect to, the
/// last two by the address of the port mapper to query.
const PLACEHOLDERS: [&str; 4] = ["{address}", "{port}", "{mapper_address}", "{mapper_port}"];
const WHERE_TO_CONNECT: usize = 2;

/// Time limit in seconds for the connection of a target that weft started.
pub(crate) const COMMAND_SECONDS: f64 = 30.0;
/// Time limit in seconds for the connection of a target that a person starts.
pub(crate) const MANUAL_SECONDS: f64 = 300.0;

/// What makes a target connect.
#[derive(Debug, Clone)]
pub(crate) enum Start {
    /// The virtual link connects without a start.
    Virtual,
    /// weft's own PM Client, over UDP. It connects to the address in the port mapper's answer.
    MapperClient { client: PmClient, deviations: Deviations },
    /// weft's own initiator, over TCP.
    Builtin { settings: Box<Settings>, service: Service, listener: LinkListener },
    /// A program and its arguments. `{address}` and `{port}` are replaced by the address to connect
    /// to, `{mapper_address}` and `{mapper_port}` by the address of the port mapper to query.
    Command { argv: Vec<String>, listener: Option<LinkListener> },
    /// A person starts the target on request.
    Manual { name: String },
}

/// A started target. Dropping this value kills the task or the program.
#[derive(Debug)]
pub(crate) enum Running {
    /// There is nothing to stop.
    Nothing,
    Task(AbortHandle),
    Program(String, Child),
}

impl Start {
    /// Starts the target, which shall connect to `there`. If there is a `mapper`, the target
    /// queries that port mapper first.
    ///
    /// # Errors
    /// The command does not start, or there is no port mapper to query. The text contains the
    /// reason.
    pub(crate) async fn start(&self, there: SocketAddr, mapper: Option<SocketAddr>) -> Result<Running, String> {
        match self {
            Start::Virtual | Start::Manual { .. } => Ok(Running::Nothing),
            Start::MapperClient { client, deviations } => {
                let Some(mapper) = mapper else { return Err("there is no port mapper to query".to_owned()) };
                let (client, deviations) = (client.clone(), deviations.clone());
                let task = tokio::spawn(async move {
                    if let Err(error) = ask(&client, deviations, mapper, there).await {
                        tracing::debug!(%error, "the builtin client of a port mapper ended");
                    }
                });
                Ok(Running::Task(task.abort_handle()))
            }
            Start::Builtin { settings, service, listener } => {
                let (address, settings) = (listener.local_addr(), settings.as_ref().clone());
                let client = service.driver().client(address, settings);
                let task = tokio::spawn(async move {
                    if let Err(error) = client.await {
                        tracing::debug!(%error, "the builtin initiator ended");
                    }
                });
                Ok(Running::Task(task.abort_handle()))
            }
            Start::Command { argv, listener } => {
                // Drop connections that are left from an earlier start.
                if let Some(listener) = listener {
                    listener.reset_pending().await;
                }
                let argv = filled(argv, there, mapper);
                let Some((program, arguments)) = argv.split_first() else {
                    return Err("the command is empty".to_owned());
                };
                let mut command = Command::new(program);
                // The program gets its own process group. When the group is killed, the program's
                // children end too.
                command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
                let child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
                Ok(Running::Program(argv.join(" "), child))
            }
        }
    }

    /// The instruction to the user, if the target is started manually.
    pub(crate) fn manual_instruction(&self, there: SocketAddr, mapper: Option<SocketAddr>) -> Option<String> {
        match self {
            Start::Manual { name } => {
                let (host, port) = (there.ip(), there.port());
                let asks = mapper.map_or(String::new(), |mapper| {
                    format!(", and to query the port mapper at address {}, port {}", mapper.ip(), mapper.port())
                });
                Some(format!("start {name}, which has to connect to address {host}, port {port}{asks}"))
            }
            _ => None,
        }
    }
}

impl Running {
    /// Returns whether this is a program, whose exit status can be queried.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self, Running::Program(..))
    }

    /// Returns the command line and the exit status of the program, once it has ended.
    pub(crate) fn ended(&mut self) -> Option<(String, ExitStatus)> {
        match self {
            Running::Program(line, child) => child.try_wait().ok().flatten().map(|status| (line.clone(), status)),
            Running::Nothing | Running::Task(_) => None,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self {
            Running::Nothing => {}
            Running::Task(task) => task.abort(),
            Running::Program(_, child) => {
                // If a process has already ended, killing it fails.
                if let Some(leader) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let others = descendants(child.id());
                    let _ = kill_process_group(leader, Signal::KILL);
                    for process in others {
                        let _ = kill_process(process, Signal::KILL);
                    }
                }
                let _ = child.wait();
            }
        }
    }
}

/// Returns the descendants of a process. Some descendants are in another process group, because
/// `timeout`, for example, makes its own group. Children of a process that has ended are missing.
fn descendants(process: u32) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> =
        children.flat_map(|list| list.split_whitespace().map(str::parse).collect::<Vec<_>>()).flatten().collect();
    let of_child = |child: u32| {
        let own = i32::try_from(child).ok().and_then(Pid::from_raw);
        own.into_iter().chain(descendants(child)).collect::<Vec<_>>()
    };
    children.into_iter().flat_map(of_child).collect()
}

/// Returns an error if a command line has a name in braces that is not a placeholder. Such a name
/// is most likely a typing error. `${NAME}` is allowed, because a shell replaces it. Braces around
/// other text are allowed, because the program may need them. `has_port_mapper` allows the
/// placeholders of a port mapper.
pub(super) fn wrong_placeholder(argv: &[String], has_port_mapper: bool) -> Option<String> {
    let known = if has_port_mapper { &PLACEHOLDERS[..] } else { &PLACEHOLDERS[..WHERE_TO_CONNECT] };
    let placeholder = argv.iter().find_map(|word| unknown(word, known))?;
    let known = known.join(" and ");
    Some(format!(
        "start: {placeholder} is not a placeholder; the placeholders are {known} (if a command needs other braces, \
         put it into a script)"
    ))
}

fn unknown<'w>(word: &'w str, known: &[&str]) -> Option<&'w str> {
    for (at, _) in word.match_indices('{') {
        let Some(len) = word[at..].find('}') else { break };
        let braced = &word[at..=at + len];
        let is_name =
            braced.len() > 2 && braced[1..len].chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '-'));
        if is_name && !word[..at].ends_with('$') && !known.contains(&braced) {
            return Some(braced);
        }
    }
    None
}

/// Replaces the placeholders of a command line by addresses.
fn filled(argv: &[String], there: SocketAddr, mapper: Option<SocketAddr>) -> Vec<String> {
    // If the listener is on all addresses, a command on this machine reaches it by loopback. A
    // target on another host needs the address in its command.
    let host = |address: SocketAddr| match address.ip() {
        ip if !ip.is_unspecified() => ip.to_string(),
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.to_string(),
    };
    let fill = |word: &String| {
        let word = word.replace("{address}", &host(there)).replace("{port}", &there.port().to_string());
        match mapper {
            Some(mapper) => {
                let word = word.replace("{mapper_address}", &host(mapper));
                word.replace("{mapper_port}", &mapper.port().to_string())
            }
            None => word,
        }
    };
    argv.iter().map(fill).collect()
}

/// Queries the port mapper for a service and connects to the address in the answer. Then speaks
/// SDP, or sends a few bytes without SDP, until the other side closes.
async fn ask(
    client: &PmClient,
    deviations: Deviations,
    mapper: SocketAddr,
    service: SocketAddr,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let Mapped { mut stream, resolution } = connect(client, mapper, service).await?;
    let mut buffer = [0; 64];
    match resolution {
        Resolution::Sdp { .. } => {
            let (mut rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default())?;
            rnic.deviate(deviations);
            let mut stream = SdpStream::over(&Device::new(rnic), stream, SdpSettings::default()).await?;
            while stream.read(&mut buffer).await? > 0 {}
        }
        Resolution::Conventional { .. } => {
            stream.write_all(WORDS).await?;
            while stream.read(&mut buffer).await? > 0 {}
        }
    }
    Ok(())
}

/// Bytes that the client sends on a connection without SDP.
const WORDS: &[u8] = b"plain words\n";

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use super::*;

    #[test]
    fn placeholders_are_filled() {
        let argv = ["ssh", "nic", "rping -c -a {address} -p {port}"].map(str::to_owned);
        let filled = |address: &str| filled(&argv, address.parse().unwrap(), None).remove(2);
        assert_eq!(filled("192.0.2.2:7174"), "rping -c -a 192.0.2.2 -p 7174");
        assert_eq!(filled("0.0.0.0:1"), "rping -c -a 127.0.0.1 -p 1");
        assert_eq!(filled("[2001:db8::1]:1"), "rping -c -a 2001:db8::1 -p 1");
        let asks = ["{mapper_address} {mapper_port} {port}".to_owned()];
        let (there, mapper) = ("192.0.2.2:7174".parse().unwrap(), "192.0.2.3:3935".parse().unwrap());
        assert_eq!(super::filled(&asks, there, Some(mapper)), ["192.0.2.3 3935 7174"]);
    }

    #[test]
    fn a_slip_in_a_placeholder_is_found() {
        let fault = |word: &str| wrong_placeholder(&["rping".to_owned(), word.to_owned()], false);
        for placeholder in ["{adress}", "-a{Address}", "{address} {prot}", "{ip-address}"] {
            assert!(fault(placeholder).is_some_and(|fault| fault.contains("{address} and {port}")), "{placeholder}");
        }
        for right in ["{address}:{port}", "${HOME}/x", "{}", "{ print $1 }", "{1,2}", "{", "}{"] {
            assert_eq!(fault(right), None, "{right}");
        }
        let asks = ["{mapper_address}:{mapper_port}".to_owned()];
        assert!(wrong_placeholder(&asks, true).is_none() && wrong_placeholder(&asks, false).is_some());
    }

    #[tokio::test]
    async fn a_program_does_not_outlive_its_guard() {
        let listener = LinkListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let start = |argv: &[&str]| Start::Command {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            listener: Some(listener.clone()),
        };
        let there = listener.local_addr();
        let running = start(&["/bin/sh", "-c", "exec cat /dev/zero >/dev/null"]).start(there, None).await.unwrap();
        let Running::Program(_, child) = &running else { panic!("no program") };
        let id = child.id();
        assert!(std::path::Path::new(&format!("/proc/{id}")).exists());
        drop(running);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
        // Another program starts these clients. The first client is in the process group of this
        // program, and the second client is in a group that `timeout` makes.
        for client in ["cat /dev/zero", "timeout 600 cat /dev/zero"] {
            // The client's end of the pipe closes when the client ends.
            let (mut reader, writer) = std::io::pipe().unwrap();
            let pipe = format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd());
            let line = format!("{client} >/dev/null 3>{pipe} & wait");
            let running = start(&["/bin/sh", "-c", &line]).start(there, None).await.unwrap();
            let Running::Program(_, child) = &running else { panic!("no program") };
            // Wait until the client has the pipe.
            let is_cat = |process: &Pid| {
                let exe = std::fs::read_link(format!("/proc/{}/exe", process.as_raw_nonzero()));
                exe.is_ok_and(|exe| exe.ends_with("cat"))
            };
            while !descendants(child.id()).iter().any(is_cat) {
                tokio::task::yield_now().await;
            }
            drop((running, writer));
            let (ended, has_ended) = std::sync::mpsc::channel();
            std::thread::spawn(move || ended.send(reader.read(&mut [0]).unwrap()));
            assert_eq!(has_ended.recv_timeout(Duration::from_secs(60)), Ok(0), "{client} has not ended");
        }
        assert!(start(&["/nowhere/rping"]).start(there, None).await.unwrap_err().starts_with("/nowhere/rping: "));
    }
}
