//! An agent on another host, or in another process: lines of JSON over TCP, or through a command.
//!
//! A thread reads, for what comes may come at any time, and ends with the connection.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver};
use tokio::time::timeout;
use weft_agent::protocol::{Action, Done, Event, Failure, LONGEST_LINE, Outcome, Request, Told, VERSION, What};

use super::{AgentAt, Gone, Way};

/// Lines that were read and not looked at: then TCP holds the agent back.
const MOST_LINES: usize = 4096;
/// An agent that takes nothing for so long is gone.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// A control connection.
pub(crate) struct Remote {
    told: Receiver<Result<Told, String>>,
    output: Box<dyn Write + Send>,
    last: u64,
    /// Events that came in front of an answer.
    early: VecDeque<(u64, Event)>,
    end: End,
}

/// What is ended with the control connection.
enum End {
    Tcp(TcpStream),
    Command(Child),
}

impl Remote {
    /// Reaches an agent, and says hello.
    pub(super) async fn open(at: &AgentAt, within: Duration) -> Result<Self, Gone> {
        let way = at.way.clone();
        let opened = tokio::task::spawn_blocking(move || match way {
            Way::Tcp(address) => over_tcp(&address, within),
            Way::Command(words) => through(&words),
        });
        let mut remote = opened.await.map_err(|error| Gone(format!("cannot be reached: {error}")))??;
        let hello = Action::Hello { version: VERSION, token: at.token.clone() };
        match remote.ask(hello, within).await? {
            (_, Ok(Done::Hello { .. })) => Ok(remote),
            (_, Ok(other)) => Err(Gone(format!("answers a hello with {other:?}"))),
            (_, Err(failure)) => Err(Gone(format!("refuses: {failure}"))),
        }
    }

    fn new(input: impl Read + Send + 'static, output: impl Write + Send + 'static, end: End) -> Self {
        let (tell, told) = mpsc::channel(MOST_LINES);
        thread::spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                let line = next_line(&mut input);
                let is_last = line.is_err();
                if tell.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Remote { told, output: Box::new(output), last: 0, early: VecDeque::new(), end }
    }

    /// Asks, and waits for the answer.
    pub(super) async fn ask(&mut self, action: Action, within: Duration) -> Result<(u64, Result<Done, Failure>), Gone> {
        self.last += 1;
        let mut line = serde_json::to_vec(&Request { id: self.last, action })
            .map_err(|error| Gone(format!("cannot be asked: {error}")))?;
        line.push(b'\n');
        let written = self.output.write_all(&line).and_then(|()| self.output.flush());
        written.map_err(|error| Gone(format!("takes no request: {error}")))?;
        let answered = async {
            loop {
                match self.told.recv().await {
                    Some(Ok(Told { at, what: What::Event(event) })) => self.early.push_back((at, event)),
                    Some(Ok(Told { at, what: What::Answer { id, outcome } })) if id == Some(self.last) => {
                        return Ok(match outcome {
                            Outcome::Done(done) => (at, Ok(done)),
                            Outcome::Failed(failure) => (at, Err(failure)),
                        });
                    }
                    Some(Ok(Told { what: What::Answer { outcome: Outcome::Failed(failure), .. }, .. })) => {
                        return Err(Gone(format!("refuses: {failure}")));
                    }
                    Some(Ok(_)) => return Err(Gone("answers what was not asked".to_owned())),
                    Some(Err(why)) => return Err(Gone(why)),
                    None => return Err(Gone("has gone".to_owned())),
                }
            }
        };
        timeout(within, answered)
            .await
            .unwrap_or_else(|_| Err(Gone(format!("does not answer within {} s", within.as_secs_f64()))))
    }

    /// What happens next, in so much time.
    pub(super) async fn next_event(&mut self, within: Duration) -> Result<Option<(u64, Event)>, Gone> {
        if let Some(early) = self.early.pop_front() {
            return Ok(Some(early));
        }
        match timeout(within, self.told.recv()).await {
            Err(_) => Ok(None),
            Ok(Some(Ok(Told { at, what: What::Event(event) }))) => Ok(Some((at, event))),
            Ok(Some(Ok(_))) => Err(Gone("answers what was not asked".to_owned())),
            Ok(Some(Err(why))) => Err(Gone(why)),
            Ok(None) => Err(Gone("has gone".to_owned())),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        match &mut self.end {
            // Where it has ended already, all of this fails or does nothing.
            End::Tcp(stream) => drop(stream.shutdown(Shutdown::Both)),
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
                return Ok(Remote::new(input, output, End::Tcp(stream)));
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
        (Some(input), Some(output)) => Ok(Remote::new(input, output, End::Command(child))),
        _ => Err(Gone("has no standard input and output".to_owned())),
    }
}

fn next_line(input: &mut impl BufRead) -> Result<Told, String> {
    let mut line = Vec::new();
    let read = input.take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
    match read {
        Err(error) => Err(format!("cannot be heard: {error}")),
        Ok(0) => Err("has gone".to_owned()),
        Ok(_) if line.last() != Some(&b'\n') => Err("says a line without an end".to_owned()),
        Ok(_) => {
            serde_json::from_slice(&line).map_err(|error| format!("says what is no line of the protocol: {error}"))
        }
    }
}
