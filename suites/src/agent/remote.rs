//! An agent on another host, in another process or in another thread. The protocol consists of
//! lines of JSON. weft sends and receives them over TCP, through the standard input and output of a
//! command, or over a pair of sockets.
//!
//! One thread reads, because a message may arrive at any time. Another thread writes, because a
//! write blocks while the agent accepts no data. Both threads end with the connection.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use weft_agent::Limits;
use weft_agent::protocol::{
    Action, AgentMessage, Event, Failure, LONGEST_EVENT, LONGEST_LINE, MessageContent, Outcome, Request, Success,
    VERSION,
};
use weft_agent::serve::serve;
use weft_agent::soft::SoftAgent;
use weft_peer::Settings;

use super::{AgentAddress, AgentError, AgentTransport};

/// Maximum number of bytes in lines that were read but not processed. At this limit weft stops
/// reading, and TCP's flow control stops the agent.
const MAX_UNPROCESSED_BYTES: usize = 4 * LONGEST_LINE;
/// Maximum number of lines that were read but not processed.
const MAX_UNPROCESSED_LINES: usize = 4096;
/// Maximum number of events that an agent may send before one answer.
const MAX_EARLY_EVENTS: usize = 10_000;
/// Time limit for a write. An agent that accepts no data for this time counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time to wait for a command's exit status after the command has closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);
/// Interval between checks for the exit status.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A line that was read. The semaphore's permit limits the bytes that are not yet processed.
type Line = (AgentMessage, Option<OwnedSemaphorePermit>);

/// A control connection.
pub(crate) struct Remote {
    received: Receiver<Result<Line, String>>,
    sender: Sender<Vec<u8>>,
    last: u64,
    /// Events that arrived before an answer.
    early: VecDeque<(u64, Event)>,
    channel: Channel,
}

/// The transport of a control connection. When weft drops the control connection, it shuts down the
/// stream or kills the command.
enum Channel {
    Tcp(TcpStream),
    Command(Child),
    Here(UnixStream),
}

impl Remote {
    /// Connects to an agent, and sends Hello.
    pub(super) async fn open(at: &AgentAddress, within: Duration) -> Result<Self, AgentError> {
        let transport = at.transport.clone();
        let opened = tokio::task::spawn_blocking(move || match transport {
            AgentTransport::Tcp(address) => connect_tcp(&address, within),
            AgentTransport::Command(words) => start_command(&words),
        });
        let remote = opened.await.map_err(|error| AgentError(format!("cannot be reached: {error}")))??;
        remote.send_hello(at.token.clone(), within).await
    }

    /// Starts an agent in this process. The agent is a software RNIC that uses this host's TCP, and
    /// its connections have these settings.
    pub(super) async fn here(settings: Settings, within: Duration) -> Result<Self, AgentError> {
        let failed = |error: std::io::Error| AgentError(format!("does not start: {error}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let (input, output) = (ours.try_clone().map_err(failed)?, ours.try_clone().map_err(failed)?);
        let begun = thread::Builder::new().name("agent".to_owned()).spawn(move || {
            let backend = || SoftAgent::new(settings, Limits::default());
            if let Err(ended) = serve(&theirs, &theirs, None, Instant::now(), backend) {
                tracing::debug!(%ended, "the agent in this process ended");
            }
        });
        begun.map_err(failed)?;
        Remote::new(input, output, Channel::Here(ours))?.send_hello(None, within).await
    }

    fn new(
        input: impl Read + Send + 'static,
        mut output: impl Write + Send + 'static,
        channel: Channel,
    ) -> Result<Self, AgentError> {
        let (from_agent, received) = mpsc::channel(MAX_UNPROCESSED_LINES);
        let (sender, mut to_agent) = mpsc::channel::<Vec<u8>>(1);
        let runtime = Handle::current();
        let no_thread =
            |error: std::io::Error| AgentError(format!("cannot be reached: weft cannot start a thread: {error}"));
        let reads = thread::Builder::new().name("agent reads".to_owned()).spawn(move || {
            let room = Arc::new(Semaphore::new(MAX_UNPROCESSED_BYTES));
            let mut input = BufReader::new(input);
            loop {
                let line = next_line(&mut input, &runtime, &room);
                let is_last = line.is_err();
                if from_agent.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        reads.map_err(no_thread)?;
        let writes = thread::Builder::new().name("agent writes".to_owned()).spawn(move || {
            while let Some(line) = to_agent.blocking_recv() {
                // If the write fails, the reader reports the reason.
                if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                    return;
                }
            }
        });
        writes.map_err(no_thread)?;
        Ok(Remote { received, sender, last: 0, early: VecDeque::new(), channel })
    }

    async fn send_hello(mut self, token: Option<String>, within: Duration) -> Result<Self, AgentError> {
        match self.ask(Action::Hello { version: VERSION, token }, within).await? {
            (_, Ok(Success::Hello { .. })) => Ok(self),
            (_, Ok(other)) => Err(AgentError(format!("answers Hello with {other:?}"))),
            (_, Err(failure)) => Err(AgentError(format!("rejects the request: {failure}"))),
        }
    }

    /// Sends a request, and waits for the answer.
    pub(super) async fn ask(
        &mut self,
        action: Action,
        within: Duration,
    ) -> Result<(u64, Result<Success, Failure>), AgentError> {
        self.last += 1;
        let mut line = serde_json::to_vec(&Request { id: self.last, action })
            .map_err(|error| AgentError(format!("cannot be reached: {error}")))?;
        line.push(b'\n');
        let answered = async {
            // If this send fails, the writer thread has ended. The reader then reports the reason.
            let _ = self.sender.send(line).await;
            loop {
                match self.received.recv().await {
                    Some(Ok((AgentMessage { at, what: MessageContent::Event(event) }, _))) => {
                        if self.early.len() >= MAX_EARLY_EVENTS {
                            return Err(AgentError(format!("sends more than {MAX_EARLY_EVENTS} events but no answer")));
                        }
                        self.early.push_back((at, event));
                    }
                    Some(Ok((AgentMessage { at, what: MessageContent::Answer { id, outcome } }, _)))
                        if id == Some(self.last) =>
                    {
                        return Ok(match outcome {
                            Outcome::Done(done) => (at, Ok(done)),
                            Outcome::Failed(failure) => (at, Err(failure)),
                        });
                    }
                    Some(Ok((
                        AgentMessage { what: MessageContent::Answer { outcome: Outcome::Failed(failure), .. }, .. },
                        _,
                    ))) => {
                        return Err(AgentError(format!("rejects the request: {failure}")));
                    }
                    Some(Ok(_)) => return Err(AgentError("answers a request that was not sent".to_owned())),
                    Some(Err(why)) => return Err(AgentError(why)),
                    None => return Err(AgentError("has closed the control connection".to_owned())),
                }
            }
        };
        match timeout(within, answered).await {
            Ok(Err(error)) => Err(self.with_status(error).await),
            Ok(answer) => answer,
            Err(_) => Err(AgentError(format!("does not answer within {} s", within.as_secs_f64()))),
        }
    }

    /// Adds the exit status of the command through which weft reached the agent, if the command
    /// ends within [`EXIT_TIMEOUT`].
    async fn with_status(&mut self, error: AgentError) -> AgentError {
        let Channel::Command(child) = &mut self.channel else { return error };
        let until = Instant::now() + EXIT_TIMEOUT;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => {
                    return AgentError(format!("{} (the command that runs the agent has ended, {status})", error.0));
                }
                Ok(None) if Instant::now() < until => tokio::time::sleep(EXIT_CHECK_INTERVAL).await,
                Ok(None) | Err(_) => return error,
            }
        }
    }

    /// Returns the next event, or `None` if no event arrives in time.
    pub(super) async fn next_event(&mut self, within: Duration) -> Result<Option<(u64, Event)>, AgentError> {
        if let Some(early) = self.early.pop_front() {
            return Ok(Some(early));
        }
        match timeout(within, self.received.recv()).await {
            Err(_) => Ok(None),
            Ok(Some(Ok((AgentMessage { at, what: MessageContent::Event(event) }, _)))) => Ok(Some((at, event))),
            Ok(Some(Ok(_))) => Err(AgentError("answers a request that was not sent".to_owned())),
            Ok(Some(Err(why))) => Err(self.with_status(AgentError(why)).await),
            Ok(None) => Err(self.with_status(AgentError("has closed the control connection".to_owned())).await),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        match &mut self.channel {
            // If the connection or the command has already ended, these calls fail or do nothing.
            Channel::Tcp(stream) => drop(stream.shutdown(Shutdown::Both)),
            Channel::Here(stream) => drop(stream.shutdown(Shutdown::Both)),
            Channel::Command(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn connect_tcp(address: &str, within: Duration) -> Result<Remote, AgentError> {
    let failed = |error| AgentError(format!("at {address} cannot be reached: {error}"));
    let mut last = std::io::Error::other("the name has no address");
    for address in address.to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(failed)?;
                let (input, output) = (stream.try_clone().map_err(failed)?, stream.try_clone().map_err(failed)?);
                return Remote::new(input, output, Channel::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

fn start_command(words: &[String]) -> Result<Remote, AgentError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(AgentError("cannot be started: its command is empty".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| AgentError(format!("does not start: cannot run {program}: {error}")))?;
    match (child.stdout.take(), child.stdin.take()) {
        (Some(input), Some(output)) => Remote::new(input, output, Channel::Command(child)),
        _ => Err(AgentError("has no standard input and output".to_owned())),
    }
}

/// Reads the next line, and waits until `room` has permits for its bytes.
fn next_line(input: &mut impl BufRead, runtime: &Handle, room: &Arc<Semaphore>) -> Result<Line, String> {
    let mut line = Vec::new();
    let read = input.take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
    match read {
        Err(error) => return Err(format!("cannot be reached: reading from it failed: {error}")),
        Ok(0) => return Err("has closed the control connection".to_owned()),
        Ok(_) if line.last() != Some(&b'\n') => {
            return Err(format!("sends a line that is incomplete, or longer than {LONGEST_LINE} bytes"));
        }
        Ok(_) => {}
    }
    let message: AgentMessage = serde_json::from_slice(&line)
        .map_err(|error| format!("sends a line that is not part of the protocol: {error}"))?;
    if matches!(message.what, MessageContent::Event(_)) && line.len() > LONGEST_EVENT {
        return Err(format!("sends an event of {} bytes, but an event may have at most {LONGEST_EVENT}", line.len()));
    }
    // `room` has more permits than the longest line has bytes, and is never closed. So this call
    // waits, but does not fail.
    let octets = u32::try_from(line.len()).unwrap_or(u32::MAX);
    let permit = runtime.block_on(Arc::clone(room).acquire_many_owned(octets));
    Ok((message, permit.ok()))
}
