//! An agent on another host, in another process or in another thread. The protocol is lines of JSON
//! over TCP, through a command, or over a pair of sockets.
//!
//! One thread reads, because a message may arrive at any time. Another thread writes, because the
//! agent may accept no data. Both threads end with the connection.

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
    Action, AgentMessage, Done, Event, Failure, LONGEST_EVENT, LONGEST_LINE, Outcome, Request, VERSION, What,
};
use weft_agent::serve::serve;
use weft_agent::soft::OnSockets;
use weft_peer::Settings;

use super::{AgentAt, Gone, Way};

/// Maximum number of bytes in lines that were read but not processed. At this limit weft stops
/// reading, and TCP's flow control stops the agent.
const MOST_UNSEEN: usize = 4 * LONGEST_LINE;
/// Maximum number of such lines.
const MOST_LINES: usize = 4096;
/// Maximum number of events before one answer.
const MOST_EARLY: usize = 10_000;
/// Time limit for a write. An agent that accepts no data for this time counts as gone.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Time to wait for a command's exit status after the command has closed its output.
const ENDING: Duration = Duration::from_millis(200);
/// Interval between checks for the exit status.
const LOOK: Duration = Duration::from_millis(10);

/// A line that was read, with the permit for its bytes.
type Line = (AgentMessage, Option<OwnedSemaphorePermit>);

/// A control connection.
pub(crate) struct Remote {
    received: Receiver<Result<Line, String>>,
    sender: Sender<Vec<u8>>,
    last: u64,
    /// Events that arrived before an answer.
    early: VecDeque<(u64, Event)>,
    end: End,
}

/// The resource that is closed or ended with the control connection.
enum End {
    Tcp(TcpStream),
    Command(Child),
    Here(UnixStream),
}

impl Remote {
    /// Connects to an agent, and sends Hello.
    pub(super) async fn open(at: &AgentAt, within: Duration) -> Result<Self, Gone> {
        let way = at.way.clone();
        let opened = tokio::task::spawn_blocking(move || match way {
            Way::Tcp(address) => over_tcp(&address, within),
            Way::Command(words) => through(&words),
        });
        let remote = opened.await.map_err(|error| Gone(format!("cannot be reached: {error}")))??;
        remote.greeted(at.token.clone(), within).await
    }

    /// Starts an agent in this process: a software RNIC on this host's TCP. Its connections have
    /// these settings.
    pub(super) async fn here(settings: Settings, within: Duration) -> Result<Self, Gone> {
        let failed = |error: std::io::Error| Gone(format!("does not start: {error}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let (input, output) = (ours.try_clone().map_err(failed)?, ours.try_clone().map_err(failed)?);
        let begun = thread::Builder::new().name("agent".to_owned()).spawn(move || {
            let carrier = || OnSockets::new(settings, Limits::default());
            if let Err(ended) = serve(&theirs, &theirs, None, Instant::now(), carrier) {
                tracing::debug!(%ended, "the agent in this process ended");
            }
        });
        begun.map_err(failed)?;
        Remote::new(input, output, End::Here(ours))?.greeted(None, within).await
    }

    fn new(input: impl Read + Send + 'static, mut output: impl Write + Send + 'static, end: End) -> Result<Self, Gone> {
        let (from_agent, received) = mpsc::channel(MOST_LINES);
        let (sender, mut to_agent) = mpsc::channel::<Vec<u8>>(1);
        let runtime = Handle::current();
        let no_thread = |error: std::io::Error| Gone(format!("cannot be talked to: {error}"));
        let reads = thread::Builder::new().name("agent reads".to_owned()).spawn(move || {
            let room = Arc::new(Semaphore::new(MOST_UNSEEN));
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
        Ok(Remote { received, sender, last: 0, early: VecDeque::new(), end })
    }

    async fn greeted(mut self, token: Option<String>, within: Duration) -> Result<Self, Gone> {
        match self.ask(Action::Hello { version: VERSION, token }, within).await? {
            (_, Ok(Done::Hello { .. })) => Ok(self),
            (_, Ok(other)) => Err(Gone(format!("answers a hello with {other:?}"))),
            (_, Err(failure)) => Err(Gone(format!("refuses: {failure}"))),
        }
    }

    /// Sends a request, and waits for the answer.
    pub(super) async fn ask(&mut self, action: Action, within: Duration) -> Result<(u64, Result<Done, Failure>), Gone> {
        self.last += 1;
        let mut line = serde_json::to_vec(&Request { id: self.last, action })
            .map_err(|error| Gone(format!("cannot be reached: {error}")))?;
        line.push(b'\n');
        let answered = async {
            // If the writer has ended, the reader has the reason.
            let _ = self.sender.send(line).await;
            loop {
                match self.received.recv().await {
                    Some(Ok((AgentMessage { at, what: What::Event(event) }, _))) => {
                        if self.early.len() >= MOST_EARLY {
                            return Err(Gone(format!("sends more than {MOST_EARLY} events and no answer")));
                        }
                        self.early.push_back((at, event));
                    }
                    Some(Ok((AgentMessage { at, what: What::Answer { id, outcome } }, _))) if id == Some(self.last) => {
                        return Ok(match outcome {
                            Outcome::Done(done) => (at, Ok(done)),
                            Outcome::Failed(failure) => (at, Err(failure)),
                        });
                    }
                    Some(Ok((
                        AgentMessage { what: What::Answer { outcome: Outcome::Failed(failure), .. }, .. },
                        _,
                    ))) => {
                        return Err(Gone(format!("refuses: {failure}")));
                    }
                    Some(Ok(_)) => return Err(Gone("answers a request that was not sent".to_owned())),
                    Some(Err(why)) => return Err(Gone(why)),
                    None => return Err(Gone("has gone".to_owned())),
                }
            }
        };
        match timeout(within, answered).await {
            Ok(Err(gone)) => Err(self.with_status(gone).await),
            Ok(answer) => answer,
            Err(_) => Err(Gone(format!("does not answer within {} s", within.as_secs_f64()))),
        }
    }

    /// Adds the exit status of the command through which weft reached the agent, once the command
    /// has ended.
    async fn with_status(&mut self, gone: Gone) -> Gone {
        let End::Command(child) = &mut self.end else { return gone };
        let until = Instant::now() + ENDING;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Gone(format!("{} (its command ended, {status})", gone.0)),
                Ok(None) if Instant::now() < until => tokio::time::sleep(LOOK).await,
                Ok(None) | Err(_) => return gone,
            }
        }
    }

    /// Returns the next event, or `None` if no event arrives in time.
    pub(super) async fn next_event(&mut self, within: Duration) -> Result<Option<(u64, Event)>, Gone> {
        if let Some(early) = self.early.pop_front() {
            return Ok(Some(early));
        }
        match timeout(within, self.received.recv()).await {
            Err(_) => Ok(None),
            Ok(Some(Ok((AgentMessage { at, what: What::Event(event) }, _)))) => Ok(Some((at, event))),
            Ok(Some(Ok(_))) => Err(Gone("answers a request that was not sent".to_owned())),
            Ok(Some(Err(why))) => Err(self.with_status(Gone(why)).await),
            Ok(None) => Err(self.with_status(Gone("has gone".to_owned())).await),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        match &mut self.end {
            // If the connection or the command has already ended, these calls fail or do nothing.
            End::Tcp(stream) => drop(stream.shutdown(Shutdown::Both)),
            End::Here(stream) => drop(stream.shutdown(Shutdown::Both)),
            End::Command(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn over_tcp(address: &str, within: Duration) -> Result<Remote, Gone> {
    let failed = |error| Gone(format!("at {address} cannot be reached: {error}"));
    let mut last = std::io::Error::other("the name has no address");
    for address in address.to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_write_timeout(Some(WRITTEN_WITHIN)).map_err(failed)?;
                let (input, output) = (stream.try_clone().map_err(failed)?, stream.try_clone().map_err(failed)?);
                return Remote::new(input, output, End::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

fn through(words: &[String]) -> Result<Remote, Gone> {
    let Some((program, arguments)) = words.split_first() else { return Err(Gone("has no command".to_owned())) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Gone(format!("does not start: {program}: {error}")))?;
    match (child.stdout.take(), child.stdin.take()) {
        (Some(input), Some(output)) => Remote::new(input, output, End::Command(child)),
        _ => Err(Gone("has no standard input and output".to_owned())),
    }
}

/// Reads the next line, and waits until there is room for it.
fn next_line(input: &mut impl BufRead, runtime: &Handle, room: &Arc<Semaphore>) -> Result<Line, String> {
    let mut line = Vec::new();
    let read = input.take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
    match read {
        Err(error) => return Err(format!("cannot be read: {error}")),
        Ok(0) => return Err("has gone".to_owned()),
        Ok(_) if line.last() != Some(&b'\n') => return Err("sends a line without an end".to_owned()),
        Ok(_) => {}
    }
    let message: AgentMessage = serde_json::from_slice(&line)
        .map_err(|error| format!("sends a line that is not part of the protocol: {error}"))?;
    if matches!(message.what, What::Event(_)) && line.len() > LONGEST_EVENT {
        return Err(format!("sends an event of {} bytes: at most {LONGEST_EVENT} are allowed", line.len()));
    }
    // A line is never longer than the room. The semaphore is never closed.
    let octets = u32::try_from(line.len()).unwrap_or(u32::MAX);
    let permit = runtime.block_on(Arc::clone(room).acquire_many_owned(octets));
    Ok((message, permit.ok()))
}
