//! Expectations of an SDP connection.

use weft_core::wire::rdmap::ReadRequest;
use weft_core::wire::sdp::Mid;
use weft_peer::Instant;

use super::SdpSide;
use super::connection::Item;
use crate::sdp::{ReceivedMessage, observed_rules};
use crate::stage::{Expectation, NoFrame, Stop};
use crate::targets::Service;

/// A value that a field must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    Octets(Vec<u8>),
}

/// The fields of an expected message.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageFields {
    /// The allowed types of the message.
    pub(crate) mids: Vec<Mid>,
    pub(crate) fields: Vec<(String, Value)>,
    /// Messages of these types may arrive first.
    pub(crate) past: Vec<Mid>,
    /// Whether an update can meet the expectation. Otherwise updates are skipped.
    pub(crate) updates: bool,
}

/// How a connection may end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    /// Messages of these types may arrive first.
    pub(crate) past: Vec<Mid>,
    /// Whether the connection must end with FIN, without Terminate, AbortConn or reset.
    pub(crate) graceful: bool,
}

impl Item {
    pub(crate) fn name(&self) -> String {
        match self {
            Item::Message(received) if received.is_update() => "Data without payload".into(),
            Item::Message(received) => received.mid.name().into(),
            Item::Other(octets) => format!("{} bytes that are no SDP message", octets.len()),
            Item::Read(_) => "an RDMA Read Request".into(),
            Item::Write { payload, .. } => format!("an RDMA Write of {} bytes", payload.len()),
            Item::Response { .. } => "an RDMA Read Response".into(),
            Item::Terminate(_) => "a Terminate".into(),
        }
    }

    /// Returns whether the bytes are no message of the SDP draft. The tester then cannot know which
    /// message the target means. The monitor reports what is wrong.
    fn is_unreadable(&self) -> bool {
        match self {
            Item::Message(received) => !received.mid.is_assigned(),
            Item::Other(_) => true,
            Item::Read(_) | Item::Write { .. } | Item::Response { .. } | Item::Terminate(_) => false,
        }
    }
}

impl MessageFields {
    fn miss(&self, received: &ReceivedMessage) -> Option<String> {
        if !self.mids.contains(&received.mid) {
            return Some(String::new());
        }
        self.fields.iter().find_map(|(name, value)| match value {
            Value::Octets(octets) => (*octets != received.payload)
                .then(|| format!(", whose payload differs ({} bytes)", received.payload.len())),
            Value::Number(number) => {
                let found = received.field(name);
                (found != Some(*number)).then(|| format!(", whose {name} is {}", found.unwrap_or_default()))
            }
        })
    }
}

impl std::fmt::Display for MessageFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.mids.iter().map(|mid| mid.name()).collect();
        f.write_str(&names.join(" or "))?;
        self.fields.iter().try_for_each(|(name, value)| match value {
            Value::Number(number) => write!(f, ", {name} {number}"),
            Value::Octets(octets) => write!(f, ", {} bytes of payload", octets.len()),
        })
    }
}

impl SdpSide<'_> {
    /// Expects a message of one of these types with these fields. Updates and messages in `past`
    /// may arrive first. If no commands drive the target, the target itself decides when to change
    /// a Mode. In this case, ModeChanges may also arrive first.
    pub(crate) async fn expect(
        &mut self,
        expectation: &Expectation,
        wanted: &MessageFields,
    ) -> Result<ReceivedMessage, Stop> {
        let expected = wanted.to_string();
        let deadline = self.connections.link.now() + expectation.within;
        let is_driven = matches!(self.connections.target.service(), Service::SdpDrive | Service::SdpConnect);
        loop {
            match self.next_readable(expectation, &expected, deadline).await? {
                Ok(Item::Message(received)) => {
                    let wants_it = wanted.mids.contains(&received.mid) && (wanted.updates || !received.is_update());
                    let may_precede = received.is_update() || !is_driven && received.mid == Mid::MODE_CHANGE;
                    if !wants_it && (may_precede || wanted.past.contains(&received.mid)) {
                        continue;
                    }
                    let text = received.describe();
                    if let Some(what) = wanted.miss(&received) {
                        return Err(self.recorder().wrong(expectation, &expected, &(text + &what)));
                    }
                    self.connections.log.answered();
                    self.recorder().met(expectation, &expected, &text);
                    return Ok(*received);
                }
                Ok(other) => return Err(self.recorder().wrong(expectation, &expected, &other.name())),
                Err(none) => return Err(self.missing(expectation, &expected, &none)),
            }
        }
    }

    /// Expects an RDMA Read Request. Updates may arrive before it.
    pub(crate) async fn expect_read(&mut self, expectation: &Expectation) -> Result<ReadRequest, Stop> {
        let expected = "an RDMA Read Request";
        match self.next_but_updates(expectation, expected).await? {
            Item::Read(read) => {
                let text = format!("an RDMA Read Request of {} bytes", read.rdmardsz);
                self.recorder().met(expectation, expected, &text);
                Ok(read)
            }
            other => Err(self.recorder().unmet(expectation, expected, &format!("it sent {}", other.name()))),
        }
    }

    /// Expects RDMA Writes of `len` bytes in total. Before the last Write, updates and messages in
    /// `past` may arrive.
    pub(crate) async fn expect_write(
        &mut self,
        expectation: &Expectation,
        len: usize,
        past: &[Mid],
    ) -> Result<(u32, u64, Vec<u8>), Stop> {
        let expected = format!("RDMA Writes of {len} bytes");
        let mut got: Option<(u32, u64, Vec<u8>)> = None;
        loop {
            match self.next_but_updates(expectation, &expected).await? {
                Item::Write { stag, tagged_offset, payload } => {
                    let (_, _, octets) = got.get_or_insert_with(|| (stag, tagged_offset, Vec::new()));
                    octets.extend(payload);
                }
                Item::Message(received) if past.contains(&received.mid) => {}
                other => {
                    return Err(self.recorder().unmet(expectation, &expected, &format!("it sent {}", other.name())));
                }
            }
            if let Some(write) = got.take_if(|(_, _, octets)| octets.len() >= len) {
                self.recorder().met(expectation, &expected, &format!("RDMA Writes of {} bytes", write.2.len()));
                return Ok(write);
            }
        }
    }

    /// Expects a complete answer to a Read Request of the tester. Returns the data.
    pub(crate) async fn expect_response(&mut self, expectation: &Expectation) -> Result<Vec<u8>, Stop> {
        let expected = "an RDMA Read Response";
        let mut got = Vec::new();
        // Other events that arrive meanwhile are for later expectations.
        let mut others = Vec::new();
        loop {
            match self.next_but_updates(expectation, expected).await? {
                Item::Response { payload, last, .. } => {
                    got.extend(payload);
                    if last {
                        let queue = &mut self.connection()?.queue;
                        others.into_iter().rev().for_each(|item| queue.push_front(item));
                        let text = format!("a Read Response of {} bytes", got.len());
                        self.recorder().met(expectation, expected, &text);
                        return Ok(got);
                    }
                }
                Item::Terminate(_) => return Err(self.recorder().unmet(expectation, expected, "it sent a Terminate")),
                other => others.push(other),
            }
        }
    }

    /// Expects that a message or an RDMA Read Request arrives next.
    pub(crate) async fn next(&mut self, expectation: &Expectation) -> Result<Item, Stop> {
        let expected = "an SDP message, or an RDMA Read Request";
        match self.next_but_updates(expectation, expected).await? {
            item @ (Item::Read(_) | Item::Message(_)) => {
                self.connections.log.answered();
                Ok(item)
            }
            other => Err(self.recorder().unmet(expectation, expected, &format!("it sent {}", other.name()))),
        }
    }

    /// Expects that the connection does not end within the time. Messages may arrive, except
    /// AbortConn.
    pub(crate) async fn expect_open(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let expected = "a connection that stays open";
        let deadline = self.connections.link.now() + expectation.within;
        loop {
            match self.next_item(deadline).await? {
                Ok(Item::Terminate(_)) => {
                    return Err(self.recorder().unmet(expectation, expected, "it sent a Terminate"));
                }
                Ok(Item::Message(received)) if received.mid == Mid::ABORT_CONN => {
                    return Err(self.recorder().unmet(expectation, expected, "it sent AbortConn"));
                }
                Ok(_) => {}
                Err(NoFrame::TimedOut) => {
                    self.recorder().met(expectation, expected, "the connection is open");
                    return Ok(());
                }
                Err(none) => return Err(self.recorder().unmet(expectation, expected, &format!("it {none}"))),
            }
        }
    }

    pub(in crate::stage) async fn next_but_updates(
        &mut self,
        expectation: &Expectation,
        expected: &str,
    ) -> Result<Item, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        loop {
            match self.next_readable(expectation, expected, deadline).await? {
                Ok(Item::Message(received)) if received.is_update() => {}
                Ok(item) => return Ok(item),
                Err(none) => return Err(self.missing(expectation, expected, &none)),
            }
        }
    }

    /// Returns the next event from the target. If the bytes are no message of the SDP draft, the case
    /// is inconclusive, because they do not show whether the expectation is met.
    async fn next_readable(
        &mut self,
        expectation: &Expectation,
        expected: &str,
        deadline: Instant,
    ) -> Result<Result<Item, NoFrame>, Stop> {
        let item = self.next_item(deadline).await?;
        if let Ok(unreadable) = &item
            && unreadable.is_unreadable()
        {
            let actual = format!("it sent {}", unreadable.name());
            self.recorder().mark_wrong();
            return Err(self.recorder().undecided(expectation, expected, &actual));
        }
        Ok(item)
    }

    pub(in crate::stage) fn missing(&mut self, expectation: &Expectation, expected: &str, none: &NoFrame) -> Stop {
        if matches!(none, NoFrame::TimedOut) {
            return self.recorder().timed_out(expectation, expected);
        }
        self.recorder().unmet(expectation, expected, &format!("it {none}"))
    }

    /// Expects that, within the time, the target sends only updates and messages in `past`, and
    /// keeps the connection open. Returns these messages.
    pub(crate) async fn expect_quiet(
        &mut self,
        expectation: &Expectation,
        past: &[Mid],
    ) -> Result<Vec<ReceivedMessage>, Stop> {
        let expected = "an open connection, and no message except updates";
        let deadline = self.connections.link.now() + expectation.within;
        let mut came = Vec::new();
        loop {
            match self.next_readable(expectation, expected, deadline).await? {
                Ok(Item::Message(received)) if received.is_update() || past.contains(&received.mid) => {
                    came.push(*received);
                }
                Ok(other) => return Err(self.recorder().wrong(expectation, expected, &other.name())),
                Err(NoFrame::TimedOut) => {
                    self.check_subjects(expectation)?;
                    let text = format!("no other message within {} s", expectation.within.as_secs_f64());
                    self.recorder().met(expectation, expected, &text);
                    return Ok(came);
                }
                Err(none) => return Err(self.recorder().unmet(expectation, expected, &format!("it {none}"))),
            }
        }
    }

    /// Checks each requirement in the expectation's `shows`: the target must have sent something
    /// that the requirement is about ([`observed_rules`]). Otherwise, the monitor cannot judge the
    /// requirement.
    pub(in crate::stage) fn check_subjects(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let came = &self.connection()?.came;
        let missing = expectation.shows.iter().find_map(|row| {
            let mut subjects = observed_rules::of_row(*row).peekable();
            let about = subjects.peek()?.about;
            (!subjects.any(|subject| came.contains(subject.name))).then_some((*row, about))
        });
        let Some((row, about)) = missing else { return Ok(()) };
        let wanted = Expectation { requirements: vec![row], shows: Vec::new(), ..expectation.clone() };
        Err(self.recorder().undecided(&wanted, about, "the target sent no message that the requirement is about"))
    }

    /// Expects that the target ends the connection. Before the end of TCP, AbortConn, a Terminate,
    /// and messages that `ending` allows may arrive. Before a graceful close, RDMA Writes and Read
    /// Requests may arrive instead of AbortConn and a Terminate.
    pub(crate) async fn expect_end(
        &mut self,
        expectation: &Expectation,
        ending: &Ending,
    ) -> Result<Vec<ReceivedMessage>, Stop> {
        let expected = if ending.graceful { "a graceful close of TCP" } else { "the end of the connection" };
        let deadline = self.connections.link.now() + expectation.within;
        let mut came = Vec::new();
        let how = loop {
            match self.next_readable(expectation, expected, deadline).await? {
                Ok(Item::Message(received)) => {
                    let abort = received.mid == Mid::ABORT_CONN && !ending.graceful;
                    if !(received.is_update() || abort || ending.past.contains(&received.mid)) {
                        return Err(self.recorder().wrong(expectation, expected, &received.describe()));
                    }
                    came.push(*received);
                }
                Ok(Item::Terminate(_)) if !ending.graceful => {}
                // The monitor judges RDMA operations before a graceful close.
                Ok(Item::Read(_) | Item::Write { .. }) if ending.graceful => {}
                Ok(other) => return Err(self.recorder().wrong(expectation, expected, &other.name())),
                Err(NoFrame::Fin) => break "FIN",
                Err(NoFrame::Reset) if !ending.graceful => break "a reset",
                Err(none) => return Err(self.missing(expectation, expected, &none)),
            }
        };
        self.connections.finish(self.number).await?;
        self.check_subjects(expectation)?;
        let aborted = came.iter().any(|received| received.mid == Mid::ABORT_CONN);
        let text = format!("{}{how}", if aborted { "AbortConn, " } else { "" });
        self.recorder().met(expectation, expected, &text);
        Ok(came)
    }
}

impl ReceivedMessage {
    /// Describes the message in one line.
    pub(crate) fn describe(&self) -> String {
        let mut text =
            format!("{} (MSeq {}, MSeqAck {}, Bufs {}", self.mid.name(), self.mseq, self.mseq_ack, self.bufs);
        for (name, value) in &self.extension {
            text.push_str(&format!(", {name} {value:#x}"));
        }
        if !self.payload.is_empty() {
            text.push_str(&format!(", {} bytes of payload", self.payload.len()));
        }
        text + ")"
    }
}
