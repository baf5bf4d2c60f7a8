//! One control connection: reads requests, and writes answers and events, until the tester closes
//! it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::protocol::{Action, AgentMessage, Done, Event, Failure, LONGEST_LINE, Outcome, Request, VERSION, What};

/// Time limit for the first line. A tester sends it at once.
const HELLO_WITHIN: Duration = Duration::from_secs(2);
/// Maximum length of the first line in bytes.
const LONGEST_HELLO: usize = 4096;
/// Maximum number of bytes that are read at once.
const AT_ONCE: usize = 1 << 16;
/// Maximum length of the reason why a line is invalid, in characters.
const LONGEST_REASON: usize = 512;

/// Executes the requests of one control connection.
pub trait Carrier {
    /// Executes an action.
    fn perform(&mut self, action: Action) -> Result<Done, Failure>;
    /// Returns the events since the last call. It is called after each action, and whenever one of
    /// the descriptors is ready.
    fn events(&mut self) -> Vec<Event>;
    /// Descriptors that are readable when something has happened. They stay open as long as the
    /// carrier exists.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;
    /// Descriptors that the carrier waits to write to. They stay open as long as the carrier
    /// exists.
    fn full(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
    /// Time of the next call of `events` if no descriptor becomes ready before.
    fn until(&self) -> Option<Instant> {
        None
    }
}

#[cfg(feature = "rdma")]
impl Carrier for crate::rdma::Nic {
    fn perform(&mut self, action: Action) -> Result<Done, Failure> {
        crate::rdma::Nic::perform(self, action)
    }

    fn events(&mut self) -> Vec<Event> {
        crate::rdma::Nic::events(self)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        crate::rdma::Nic::descriptors(self).into()
    }
}

/// Why a control connection ended, if the tester did not close it.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The tester was refused, and got this reason.
    #[error("no hello: {0}")]
    NoHello(String),
    /// A line exceeded this number of bytes.
    #[error("a line of more than {0} bytes")]
    TooLong(usize),
    /// The connection broke, or the tester does not read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves a tester until it closes the connection. Times in messages count from `begin`, the start
/// of the agent. The carrier is created only after a valid hello, so no client can use the device
/// without the token.
pub fn serve<C: Carrier>(
    input: impl Read + AsFd,
    output: impl Write,
    token: Option<&str>,
    begin: Instant,
    carrier: impl FnOnce() -> Result<C, Failure>,
) -> Result<(), Ended> {
    let mut control = Control::new(input, output, begin);
    let Some(hello) = control.read_hello()? else { return Ok(()) };
    if token.is_some_and(|token| !hello.has_token(token)) {
        return Err(control.refuse(Some(hello.id), WRONG_TOKEN));
    }
    control.serve(&hello, carrier)
}

/// Answer to a wrong token.
pub(crate) const WRONG_TOKEN: &str = "the token is not the agent's";

/// One control connection.
pub(crate) struct Control<I, W> {
    input: I,
    lines: Lines,
    out: Out<W>,
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
        let lines = Lines { octets: Vec::new(), looked: 0, arrived: vec![0; AT_ONCE] };
        Control { input, lines, out: Out { output, begin } }
    }

    /// Reads the first request. Returns `None` if the tester closes the connection before.
    pub(crate) fn read_hello(&mut self) -> Result<Option<Hello>, Ended> {
        let until = Instant::now() + HELLO_WITHIN;
        let first = loop {
            let line = self.lines.next();
            // The limit applies to a complete line as well as to an incomplete one.
            if line.as_ref().map_or(self.lines.octets.len(), Vec::len) > LONGEST_HELLO {
                let why = format!("more than {LONGEST_HELLO} bytes without a line feed");
                return Err(self.refuse(None, &why));
            }
            if let Some(line) = line {
                break line;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.refuse(None, &format!("no hello within {} s", HELLO_WITHIN.as_secs())));
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
            Ok(Request { id, .. }) => return Err(self.refuse(Some(id), "the first request is hello")),
            Err(why) => return Err(self.refuse(None, &why)),
        };
        if version != VERSION {
            return Err(self.refuse(Some(id), &format!("version {version}: this agent speaks {VERSION}")));
        }
        Ok(Some(Hello { id, token }))
    }

    /// Waits for `time`. Returns whether the tester is still connected afterwards.
    pub(crate) fn hold(&self, time: Duration) -> io::Result<bool> {
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
    pub(crate) fn serve<C: Carrier>(
        mut self,
        hello: &Hello,
        carrier: impl FnOnce() -> Result<C, Failure>,
    ) -> Result<(), Ended> {
        let mut carrier = match carrier() {
            Ok(carrier) => carrier,
            Err(failure) => return Err(self.refuse(Some(hello.id), &failure.to_string())),
        };
        let Control { input, lines, out } = &mut self;
        out.answer(Some(hello.id), Ok(Done::Hello { version: VERSION, agent: env!("CARGO_PKG_VERSION").to_owned() }))?;
        loop {
            while let Some(line) = lines.next() {
                match read(&line) {
                    Ok(Request { id, action }) => out.answer(Some(id), carrier.perform(action))?,
                    Err(why) => out.answer(None, Err(Failure::of(why)))?,
                }
                out.events(carrier.events())?;
            }
            if lines.octets.len() >= LONGEST_LINE {
                out.answer(None, Err(Failure::of(format!("a line of more than {LONGEST_LINE} bytes"))))?;
                return Err(Ended::TooLong(LONGEST_LINE));
            }
            let readable = {
                let mut all = vec![input.as_fd()];
                all.extend(carrier.descriptors());
                let left = carrier.until().map(|until| until.saturating_duration_since(Instant::now()));
                wait(&all, &carrier.full(), left)?
            };
            out.events(carrier.events())?;
            if readable && lines.read(input)? == 0 {
                return Ok(());
            }
        }
    }

    /// Answers with the reason why the connection closes.
    pub(crate) fn refuse(&mut self, id: Option<u64>, why: &str) -> Ended {
        self.out.refuse(id, why)
    }
}

/// Refuses a tester for lack of resources, before its first line is read.
pub(crate) fn turn_away(output: impl Write, begin: Instant, why: &str) -> Ended {
    Out { output, begin }.refuse(None, why)
}

/// Waits until a descriptor can be read, or one of `full` can be written. Returns whether the first
/// descriptor can be read.
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
struct Lines {
    octets: Vec<u8>,
    /// Number of bytes at the start that contain no line feed.
    looked: usize,
    /// Buffer for one read.
    arrived: Vec<u8>,
}

impl Lines {
    /// Removes and returns the next complete line, without its line feed.
    fn next(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.octets[self.looked..].iter().position(|octet| *octet == b'\n') else {
            self.looked = self.octets.len();
            return None;
        };
        let rest = self.octets.split_off(self.looked + end + 1);
        let mut line = std::mem::replace(&mut self.octets, rest);
        self.looked = 0;
        line.pop();
        Some(line)
    }

    /// Reads available bytes, up to the maximum length of a line. Returns their number.
    fn read(&mut self, input: &mut impl Read) -> io::Result<usize> {
        let room = LONGEST_LINE.saturating_sub(self.octets.len()).min(AT_ONCE);
        let got = loop {
            match input.read(&mut self.arrived[..room]) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                got => break got?,
            }
        };
        self.octets.extend_from_slice(&self.arrived[..got]);
        Ok(got)
    }
}

fn read(line: &[u8]) -> Result<Request, String> {
    // The reason may quote a name from the line, and the name may be nearly as long as the line.
    let reason = |why: serde_json::Error| why.to_string().chars().take(LONGEST_REASON).collect::<String>();
    serde_json::from_slice(line).map_err(|why| format!("no request: {}", reason(why)))
}

/// Returns whether a token is the right one. The time taken does not depend on where the tokens
/// differ.
fn is_same(token: &[u8], given: &[u8]) -> bool {
    let differs =
        token.iter().enumerate().fold(0, |differs, (index, octet)| differs | (octet ^ given.get(index).unwrap_or(&0)));
    differs == 0 && token.len() == given.len()
}

struct Out<W> {
    output: W,
    begin: Instant,
}

impl<W: Write> Out<W> {
    fn send(&mut self, what: What) -> io::Result<()> {
        let at = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut line = serde_json::to_vec(&AgentMessage { at, what })?;
        line.push(b'\n');
        self.output.write_all(&line)
    }

    fn answer(&mut self, id: Option<u64>, outcome: Result<Done, Failure>) -> io::Result<()> {
        let outcome = outcome.map_or_else(Outcome::Failed, Outcome::Done);
        self.send(What::Answer { id, outcome })?;
        self.output.flush()
    }

    fn events(&mut self, events: Vec<Event>) -> io::Result<()> {
        for event in events {
            self.send(What::Event(event))?;
        }
        self.output.flush()
    }

    /// Answers with the reason why the connection closes.
    fn refuse(&mut self, id: Option<u64>, why: &str) -> Ended {
        match self.answer(id, Err(Failure::of(why))) {
            Ok(()) => Ended::NoHello(why.to_owned()),
            Err(broken) => broken.into(),
        }
    }
}
