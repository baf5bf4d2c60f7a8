//! One control connection: reads requests, and writes answers and events, until the tester closes
//! it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::protocol::{
    Action, AgentMessage, Event, Failure, LONGEST_LINE, MessageContent, Outcome, Request, Success, VERSION,
};

/// Time limit for the first line. A tester sends the first line at once.
const HELLO_WITHIN: Duration = Duration::from_secs(2);
/// Maximum length of the first line in bytes.
const LONGEST_HELLO: usize = 4096;
/// Maximum number of bytes that are read at once.
const READ_SIZE: usize = 1 << 16;
/// Maximum length of the reason why a line is invalid, in characters.
const LONGEST_REASON: usize = 512;

/// Executes the requests of one control connection.
pub trait Backend {
    /// Executes an action.
    fn perform(&mut self, action: Action) -> Result<Success, Failure>;
    /// Returns the events since the last call. The caller calls this function after each action,
    /// and whenever one of the descriptors is ready.
    fn events(&mut self) -> Vec<Event>;
    /// Descriptors that become readable when the backend possibly has a new event. The descriptors
    /// stay open as long as the backend exists.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;
    /// Descriptors to which the backend will write when they become writable. The descriptors stay
    /// open as long as the backend exists.
    fn write_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
    /// Time at which the caller must call `events`, even if no descriptor has become ready.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Why a control connection ended, if the tester did not close it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The agent rejected the tester, and sent this reason to the tester.
    #[error("rejected the tester: {0}")]
    NoHello(String),
    /// A line exceeded this number of bytes.
    #[error("the tester sent a line of more than {0} bytes")]
    TooLong(usize),
    /// The connection broke, or the tester does not read the answers.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves a tester until the tester closes the connection. Times in messages count from `begin`,
/// the start of the agent. The backend is created only after a valid hello, so no client can use
/// the device without the token.
pub fn serve<C: Backend>(
    input: impl Read + AsFd,
    output: impl Write,
    token: Option<&str>,
    begin: Instant,
    backend: impl FnOnce() -> Result<C, Failure>,
) -> Result<(), ServeError> {
    let mut control = Control::new(input, output, begin);
    let Some(hello) = control.read_hello()? else { return Ok(()) };
    if token.is_some_and(|token| !hello.has_token(token)) {
        return Err(control.refuse(Some(hello.id), WRONG_TOKEN));
    }
    control.serve(&hello, backend)
}

/// Answer to a wrong token.
pub(crate) const WRONG_TOKEN: &str = "wrong token; use the token with which the agent was started";

/// One control connection.
pub(crate) struct Control<I, W> {
    input: I,
    lines: LineBuffer,
    out: MessageWriter<W>,
}

/// The first request. Its version is right, and its token is not verified yet.
pub(crate) struct Hello {
    pub(crate) id: u64,
    token: Option<String>,
}

impl Hello {
    /// Whether the tester sent this token.
    pub(crate) fn has_token(&self, token: &str) -> bool {
        is_same(token.as_bytes(), self.token.as_deref().unwrap_or("").as_bytes())
    }
}

impl<I: Read + AsFd, W: Write> Control<I, W> {
    pub(crate) fn new(input: I, output: W, begin: Instant) -> Self {
        let lines = LineBuffer { octets: Vec::new(), scanned: 0, buffer: vec![0; READ_SIZE] };
        Control { input, lines, out: MessageWriter { output, begin } }
    }

    /// Reads the first request. Returns `None` if the tester closes the connection without a
    /// request.
    pub(crate) fn read_hello(&mut self) -> Result<Option<Hello>, ServeError> {
        let until = Instant::now() + HELLO_WITHIN;
        let first = loop {
            let line = self.lines.next();
            // The limit applies to complete and to incomplete lines.
            if line.as_ref().map_or(self.lines.octets.len(), Vec::len) > LONGEST_HELLO {
                let why = format!("the first line has more than {LONGEST_HELLO} bytes");
                return Err(self.refuse(None, &why));
            }
            if let Some(line) = line {
                break line;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.refuse(None, &format!("no `hello` arrived within {} s", HELLO_WITHIN.as_secs())));
            }
            // A signal also ends a wait.
            if !wait(&[self.input.as_fd()], &[], Some(left))? {
                continue;
            }
            if self.lines.read(&mut self.input)? == 0 {
                return Ok(None);
            }
        };
        let (id, version, token) = match read(&first) {
            Ok(Request { id, action: Action::Hello { version, token } }) => (id, version, token),
            Ok(Request { id, .. }) => return Err(self.refuse(Some(id), "the first request must be `hello`")),
            Err(why) => return Err(self.refuse(None, &why)),
        };
        if version != VERSION {
            return Err(self.refuse(Some(id), &format!("the agent has protocol version {VERSION}, not {version}")));
        }
        Ok(Some(Hello { id, token }))
    }

    /// Waits for `time`. Returns whether the tester is still connected afterwards.
    pub(crate) fn wait_while_connected(&self, time: Duration) -> io::Result<bool> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            let mut polled = [PollFd::from_borrowed_fd(self.input.as_fd(), PollFlags::RDHUP)];
            match poll(&mut polled, Some(&left.try_into().map_err(io::Error::other)?)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(false),
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Answers the hello, and then each request, until the tester closes the connection.
    pub(crate) fn serve<C: Backend>(
        mut self,
        hello: &Hello,
        backend: impl FnOnce() -> Result<C, Failure>,
    ) -> Result<(), ServeError> {
        let mut backend = match backend() {
            Ok(backend) => backend,
            Err(failure) => return Err(self.refuse(Some(hello.id), &failure.to_string())),
        };
        let Control { input, lines, out } = &mut self;
        out.answer(
            Some(hello.id),
            Ok(Success::Hello { version: VERSION, agent: env!("CARGO_PKG_VERSION").to_owned() }),
        )?;
        loop {
            while let Some(line) = lines.next() {
                match read(&line) {
                    Ok(Request { id, action }) => out.answer(Some(id), backend.perform(action))?,
                    Err(why) => out.answer(None, Err(Failure::of(why)))?,
                }
                out.events(backend.events())?;
            }
            if lines.octets.len() >= LONGEST_LINE {
                out.answer(None, Err(Failure::of(format!("the line has more than {LONGEST_LINE} bytes"))))?;
                return Err(ServeError::TooLong(LONGEST_LINE));
            }
            let readable = {
                let mut all = vec![input.as_fd()];
                all.extend(backend.descriptors());
                let left = backend.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
                wait(&all, &backend.write_descriptors(), left)?
            };
            out.events(backend.events())?;
            if readable && lines.read(input)? == 0 {
                return Ok(());
            }
        }
    }

    /// Answers with the reason why the connection closes.
    pub(crate) fn refuse(&mut self, id: Option<u64>, why: &str) -> ServeError {
        self.out.refuse(id, why)
    }
}

/// Refuses a tester for lack of resources, before its first line is read.
pub(crate) fn refuse_early(output: impl Write, begin: Instant, why: &str) -> ServeError {
    MessageWriter { output, begin }.refuse(None, why)
}

/// Waits until one of `descriptors` is readable, or one of `full` is writable. Returns whether the
/// first of `descriptors` is readable.
fn wait(descriptors: &[BorrowedFd<'_>], full: &[BorrowedFd<'_>], within: Option<Duration>) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> = descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    polled.extend(full.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)));
    let within = within.map(TryInto::try_into).transpose().map_err(io::Error::other)?;
    match poll(&mut polled, within.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(why) => return Err(why.into()),
    }
    Ok(polled.first().is_some_and(|input| !input.revents().is_empty()))
}

/// Received bytes, from which complete lines are removed.
struct LineBuffer {
    octets: Vec<u8>,
    /// Number of bytes at the start that contain no line feed.
    scanned: usize,
    /// Buffer for one read.
    buffer: Vec<u8>,
}

impl LineBuffer {
    /// Removes and returns the next complete line, without its line feed.
    fn next(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.octets[self.scanned..].iter().position(|octet| *octet == b'\n') else {
            self.scanned = self.octets.len();
            return None;
        };
        let rest = self.octets.split_off(self.scanned + end + 1);
        let mut line = std::mem::replace(&mut self.octets, rest);
        self.scanned = 0;
        line.pop();
        Some(line)
    }

    /// Reads available bytes, up to the maximum length of a line. Returns the number of bytes.
    fn read(&mut self, input: &mut impl Read) -> io::Result<usize> {
        let room = LONGEST_LINE.saturating_sub(self.octets.len()).min(READ_SIZE);
        let got = loop {
            match input.read(&mut self.buffer[..room]) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                got => break got?,
            }
        };
        self.octets.extend_from_slice(&self.buffer[..got]);
        Ok(got)
    }
}

fn read(line: &[u8]) -> Result<Request, String> {
    // The reason can contain a name from the line. This name can be nearly as long as the line.
    let reason = |why: serde_json::Error| why.to_string().chars().take(LONGEST_REASON).collect::<String>();
    serde_json::from_slice(line).map_err(|why| format!("the line is not a valid request: {}", reason(why)))
}

/// Returns whether `given` is the right token. The duration does not depend on the position at
/// which the tokens differ.
fn is_same(token: &[u8], given: &[u8]) -> bool {
    let differs =
        token.iter().enumerate().fold(0, |differs, (index, octet)| differs | (octet ^ given.get(index).unwrap_or(&0)));
    differs == 0 && token.len() == given.len()
}

struct MessageWriter<W> {
    output: W,
    begin: Instant,
}

impl<W: Write> MessageWriter<W> {
    fn send(&mut self, what: MessageContent) -> io::Result<()> {
        let at = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut line = serde_json::to_vec(&AgentMessage { at, what })?;
        line.push(b'\n');
        self.output.write_all(&line)
    }

    fn answer(&mut self, id: Option<u64>, outcome: Result<Success, Failure>) -> io::Result<()> {
        let outcome = outcome.map_or_else(Outcome::Failed, Outcome::Done);
        self.send(MessageContent::Answer { id, outcome })?;
        self.output.flush()
    }

    fn events(&mut self, events: Vec<Event>) -> io::Result<()> {
        for event in events {
            self.send(MessageContent::Event(event))?;
        }
        self.output.flush()
    }

    /// Answers with the reason why the connection closes.
    fn refuse(&mut self, id: Option<u64>, why: &str) -> ServeError {
        match self.answer(id, Err(Failure::of(why))) {
            Ok(()) => ServeError::NoHello(why.to_owned()),
            Err(broken) => broken.into(),
        }
    }
}
