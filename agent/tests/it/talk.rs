//! [`Talk`] plays the tester of an agent. The agent has the software RNIC on this host's TCP.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic in a helper function fails the test")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weft_agent::Limits;
use weft_agent::serve::{ServeError, serve};
use weft_agent::soft::SoftAgent;
use weft_peer::Settings;

/// Longer than any successful operation takes.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);

pub(crate) struct Talk {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    events: VecDeque<Value>,
    last: u64,
    agent: JoinHandle<Result<(), ServeError>>,
}

impl Talk {
    /// Returns a tester that has sent its hello.
    pub(crate) fn new(limits: Limits) -> Self {
        let (stream, agents) = UnixStream::pair().unwrap();
        let backend = move || SoftAgent::new(Settings::default(), limits);
        let agent = thread::spawn(move || serve(&agents, &agents, None, Instant::now(), backend));
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        let mut talk = Talk { stream, lines, events: VecDeque::new(), last: 0, agent };
        talk.done(&json!({"hello": {"version": 1}}));
        talk
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the agent has gone");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, action: &Value) -> Value {
        self.last += 1;
        let line = format!("{}\n", json!({"id": self.last, "do": action}));
        self.stream.write_all(line.as_bytes()).unwrap();
        loop {
            let mut message = self.receive();
            if let Some(event) = message.get_mut("event") {
                self.events.push_back(event.take());
                continue;
            }
            assert_eq!(message["answer"]["id"], self.last, "{message}");
            return message["answer"].take();
        }
    }

    pub(crate) fn done(&mut self, action: &Value) -> Value {
        let mut answer = self.ask(action);
        assert!(answer["done"] != Value::Null, "{action}: {answer}");
        answer["done"].take()
    }

    pub(crate) fn failed(&mut self, action: &Value) -> String {
        let answer = self.ask(action);
        let what = answer["failed"]["what"].as_str();
        what.unwrap_or_else(|| panic!("{action}: {answer}")).to_owned()
    }

    /// Performs `action`. Returns the number of the new object.
    pub(crate) fn number(&mut self, kind: &str, action: &Value) -> u64 {
        self.done(action)[kind][kind].as_u64().unwrap()
    }

    /// Returns the next event. The event must have the kind `kind`.
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        let mut event = match self.events.pop_front() {
            Some(event) => event,
            None => self.receive()["event"].take(),
        };
        assert!(event[kind] != Value::Null, "expected the event {kind}, found {event}");
        event[kind].take()
    }

    /// Disconnects.
    pub(crate) fn end(self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self.agent.join().unwrap().unwrap();
    }
}
