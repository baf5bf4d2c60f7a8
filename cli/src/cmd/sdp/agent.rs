//! `weft sdp agent`: opens and accepts SDP connections for programs with the preload library.
//!
//! The preload library is a shim between a program and its socket calls. The shim sends requests to
//! the agent on a Unix socket (`weft_peer::shim`). Each connection has two parts: TCP on the
//! loopback interface between the program and the agent, and SDP between the agent and the peer.
//! The agent relays the bytes between both parts.

mod connect;
mod failures;
mod listen;
mod names;
mod pending_connect;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use weft_peer::driver::portmap::PmServer;
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::portmap::{ServerSettings, Table};
use weft_peer::shim::{Answer, Failure, MAX_LINE_LEN, Request};

use self::connect::ConnectRequest;
use self::failures::Failures;
use self::listen::Listeners;
use self::names::NameTable;
use super::connection_log::{ConnectionLog, OutputArguments};
use super::outgoing::Connector;
use super::settings::SdpArguments;
use crate::exit::{BadInput, note, print_line};
use crate::linkage;
use crate::runtime;
use crate::signals::{self, StopSignal};
use crate::watch::WatchArguments;

/// Maximum time to receive a complete request. Each later step of the request has the same limit.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of requests at a time. Further requests wait.
const REQUESTS: usize = 1024;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Each process that can open the socket can connect and listen through the agent. Use --socket-mode\n\
    to restrict the access.\n\n\
    The rules file of a program selects the connections that use SDP. docs/sdp.md describes this file.\n\n\
    The agent prints a line for each finished connection to standard output. Ctrl-C or SIGTERM stops\n\
    the agent and resets the open connections.\n\n\
    Examples:\n  \
    weft sdp agent --socket /run/weft-sdp.sock\n  \
    WEFT_SDP_RULES=rules LD_PRELOAD=libweft_preload.so curl http://192.0.2.17/"
)]
pub(crate) struct Arguments {
    /// Listen for programs on this Unix socket
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Set the permissions of the socket, in octal
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = octal)]
    socket_mode: u32,
    /// Also run a port mapper at this UDP address, for the programs that listen
    #[arg(long, value_name = "ADDRESS:PORT")]
    pm_listen: Option<std::net::SocketAddr>,
    /// Allow at most this many connections at a time, and refuse further connections
    #[arg(long, value_name = "COUNT", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    most: u32,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    sdp: SdpArguments,
    #[command(flatten)]
    watch: WatchArguments,
}

/// Parses the permissions of a file, in octal.
fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777).ok_or_else(|| "use three octal digits".to_owned())
}

/// The state that all requests share.
struct Agent {
    device: Device,
    connector: Connector,
    sdp: SdpArguments,
    mapper: Option<PmServer>,
    log: ConnectionLog,
    names: NameTable,
    failures: Failures,
    listeners: Listeners,
    room: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

/// The reason why a request failed: the error for the program, and a text.
type Refusal = (Failure, String);

/// Serves requests until a signal stops the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(hint) = linkage::preload() {
        note(hint);
    }
    let work = async |traffic| serve(arguments, traffic).await.map(|()| ExitCode::SUCCESS);
    runtime::block_on(arguments.watch.around(work))
}

async fn serve(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let device = arguments.sdp.open(traffic.clone())?;
    let connector = Connector::new(&device, arguments.sdp.relayed(), traffic.as_ref())?;
    let mapper = arguments.pm_listen.map(|at| {
        PmServer::bind(&[at], ServerSettings::default(), Table::default(), traffic.as_ref())
            .map_err(|error| BadInput(format!("cannot listen on {at}: {error}")))
    });
    let listener = bind(&arguments.socket, arguments.socket_mode).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
            io::ErrorKind::InvalidInput => "its path must have at most 107 bytes".to_owned(),
            io::ErrorKind::AlreadyExists => "the path exists and is not a socket".to_owned(),
            _ => error.to_string(),
        };
        BadInput(format!("cannot listen on {}: {why}", arguments.socket.display()))
    })?;
    let (stopper, stop) = watch::channel(false);
    let room = Arc::new(Semaphore::new(arguments.most as usize));
    let agent = Arc::new(Agent {
        device,
        connector,
        sdp: arguments.sdp.clone(),
        mapper: mapper.transpose()?,
        log: ConnectionLog::new(&arguments.output),
        names: NameTable::default(),
        failures: Failures::default(),
        listeners: Listeners::default(),
        room: Arc::clone(&room),
        stop,
    });
    let interrupted = signals::interrupted();
    print_line!("listening on {}", arguments.socket.display());
    accept(&agent, listener, interrupted).await;
    let _ = fs::remove_file(&arguments.socket);
    // Sending cannot fail, because the agent has a receiver.
    let _ = stopper.send(true);
    // Wait until all connections have ended. Each connection has a permit until its end.
    let _ = tokio::time::timeout(STEP_TIMEOUT, room.acquire_many(arguments.most)).await;
    agent.log.finish();
    Ok(())
}

/// Listens on a Unix socket. Replaces the socket of an agent that has ended. Fails if another agent
/// listens on the path.
fn bind(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another agent uses this path"));
    }
    match fs::symlink_metadata(path) {
        Ok(it) if std::os::unix::fs::FileTypeExt::is_socket(&it.file_type()) => fs::remove_file(path)?,
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(listener)
}

/// Accepts requests until a signal stops the command.
async fn accept(agent: &Arc<Agent>, listener: UnixListener, mut interrupted: impl Future<Output = StopSignal> + Unpin) {
    let requests = Arc::new(Semaphore::new(REQUESTS));
    loop {
        let next = async {
            // Acquiring cannot fail, because nothing closes the semaphore.
            let permit = Arc::clone(&requests).acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        tokio::select! {
            (permit, came) = next => match came {
                Ok((stream, _)) => {
                    let agent = Arc::clone(agent);
                    tokio::spawn(async move {
                        agent.request(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    agent.log.report_error(&format!("cannot accept a request: {error}"));
                    tokio::time::sleep(runtime::ACCEPT_AGAIN).await;
                }
            },
            _ = &mut interrupted => return,
        }
    }
}

impl Agent {
    /// Answers one request.
    async fn request(self: &Arc<Self>, mut stream: UnixStream) {
        let answer = match read(&mut stream).await {
            Some(Request::Connect { service, by, source, no_wait }) => {
                return self.connect(stream, ConnectRequest { service, by, source }, no_wait).await;
            }
            Some(Request::Listen { service, sdp, only_v6 }) => match self.listen(service, sdp, only_v6) {
                Ok(()) => Answer::Done,
                Err((failure, message)) => Answer::Failed(failure, message),
            },
            Some(Request::Names { local, peer }) => self.names.find(local, peer).map_or(Answer::Unknown, Answer::Names),
            Some(Request::Why(from)) => match self.failures.find(from) {
                Some((failure, message)) => Answer::Failed(failure, message),
                None => Answer::Unknown,
            },
            Some(Request::From(_)) | None => Answer::Failed(Failure::Other, "invalid request".to_owned()),
        };
        write(&mut stream, &answer).await;
    }

    /// Completes when the agent stops.
    async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // Waiting cannot fail, because the sender is dropped only after all connections have ended.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

/// Reads a request. Returns `None` if no line arrives in time, or if the line is not a request.
async fn read(stream: &mut UnixStream) -> Option<Request> {
    let line = async {
        let mut line = Vec::new();
        while line.len() < MAX_LINE_LEN {
            match stream.read_u8().await.ok()? {
                b'\n' => return String::from_utf8(line).ok()?.parse().ok(),
                octet => line.push(octet),
            }
        }
        None
    };
    tokio::time::timeout(STEP_TIMEOUT, line).await.ok()?
}

/// Sends an answer. Ignores errors, because the program can have ended.
async fn write(stream: &mut UnixStream, answer: &Answer) {
    let line = format!("{answer}\n");
    let _ = tokio::time::timeout(STEP_TIMEOUT, stream.write_all(line.as_bytes())).await;
}
