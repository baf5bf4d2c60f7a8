//! The control run of a failed case: the same script, with a legal step in place of the one that
//! deviates.
//!
//! A script marks the step that deviates from a plain exchange (`conn:send(message, { deviates =
//! true })`). If the case fails, it is run again as a control. The control is the same up to the
//! first marked step. In its place the tester does plain exchanges with FPDUs of the lengths that
//! the failed run sent in its marked steps, and the control is over. If they fail, too, the target
//! has a more basic fault than the one that the case is about.
//!
//! With SDP the plain exchange is Data in both directions, with a port mapper a right PMReq, with
//! its client a right PMAccept for another service, and with an agent a Send each way on a
//! connection of its own.
//!
//! A start-up frame is marked with the legal frame that takes its place in the control (`{ deviates
//! = t:request() }`). The control sends that one, finishes start-up, does what the target's service
//! is for once, and is over.

use weft_core::wire::ddp::{Segment, queue};
use weft_core::wire::mpa::Startup;
use weft_core::wire::mpa::fpdu::len_without_markers;
use weft_core::wire::rdmap::Opcode;

use super::exchange::{Started, TaggedBuffer};
use super::fpdu::{crc_is_right, ulpdu};
use super::sdp::SEGMENT;
use super::{Decision, Direction, Expectation, Stage, StepKind, Stop, describe};
use crate::model::{SourceLocation, Verdict};
use crate::script::message::Message;

/// Most lengths of FPDUs that a control tries.
const MOST_LENGTHS: usize = 64;
/// Seconds for each answer in a plain exchange.
const ANSWER_SECONDS: f64 = 5.0;
/// Octets of the header of an untagged and of a tagged segment (RFC 5041 section 4).
pub(super) const UNTAGGED: usize = 18;
pub(super) const TAGGED: usize = 14;
/// Octets of a port mapper's message.
const MAPPER_MESSAGE: usize = 48;
/// Markers are so many octets apart, and so long (RFC 5044 section 4.3).
const MARKER_INTERVAL: u64 = 512;
const MARKER: u64 = 4;

/// How a step of a script differs from a plain exchange.
#[derive(Debug, Clone)]
pub(crate) enum Deviation {
    /// In FPDUs: plain exchanges take its place.
    Fpdus,
    /// In a start-up frame: this legal one takes its place.
    Startup(Message),
}

/// The marked steps of a case, and what its control came to.
#[derive(Debug, Default)]
pub(crate) struct ControlLog {
    /// A marked step sent a start-up frame.
    pub(crate) has_startup: bool,
    /// Lengths of the ULPDUs that the marked steps sent, each once.
    pub(crate) lengths: Vec<u16>,
    /// Of a control: did the plain exchange work, and if not, why? `None`: it was not reached.
    pub(crate) outcome: Option<Result<(), String>>,
}

/// Where one connection is, so that a plain exchange can continue there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// CRCs are in use.
    crc: bool,
    /// The target asked for markers.
    markers: bool,
    /// MSN of the tester's next Send, and of its next Read Request.
    pub(super) send_msn: u32,
    pub(super) read_msn: u32,
    /// MSN of the first Send that the target sent.
    first_msn: Option<u32>,
    /// The tester has sent an FPDU.
    pub(super) has_sent: bool,
    /// A buffer of the target that may be written and read.
    pub(super) buffer: Option<TaggedBuffer>,
}

impl Default for Place {
    fn default() -> Self {
        Place { crc: false, markers: false, send_msn: 1, read_msn: 1, first_msn: None, has_sent: false, buffer: None }
    }
}

impl Place {
    /// The tester sends these octets: a start-up frame, FPDUs, or whatever a script makes. Says
    /// whether they begin with the first FPDU of the connection and its CRC is wrong.
    pub(super) fn sends(&mut self, octets: &[u8]) -> bool {
        if let Ok(frame) = Startup::parse(octets) {
            self.crc |= frame.crc;
            return false;
        }
        let first_len = octets.first_chunk().map(|length| len_without_markers(u16::from_be_bytes(*length)));
        let first = first_len.and_then(|len| octets.get(..len)).filter(|_| !self.has_sent && self.crc && !self.markers);
        let is_bad = first.is_some_and(|fpdu| !crc_is_right(fpdu));
        self.has_sent = true;
        let mut rest = octets;
        while let Some(length) = rest.first_chunk().map(|length| u16::from_be_bytes(*length)) {
            if let Ok(Segment::Untagged(header, _)) = Segment::parse(ulpdu(rest))
                && header.control.last()
            {
                let next = header.msn.get().wrapping_add(1);
                match header.qn.get() {
                    queue::SEND => self.send_msn = next,
                    queue::READ_REQUEST => self.read_msn = next,
                    _ => {}
                }
            }
            rest = rest.get(len_without_markers(length)..).unwrap_or_default();
        }
        is_bad
    }

    /// The target asked for markers.
    pub(super) fn has_markers(&self) -> bool {
        self.markers
    }

    /// The target sent this start-up frame.
    pub(super) fn started(&mut self, frame: &[u8]) {
        if let Ok(frame) = Startup::parse(frame) {
            self.crc |= frame.crc;
            self.markers = frame.markers;
        }
    }

    /// The target sent this FPDU.
    pub(super) fn receives(&mut self, fpdu: &[u8]) {
        if let Ok(Segment::Untagged(header, _)) = Segment::parse(ulpdu(fpdu))
            && header.ulp_control.opcode().is_send()
        {
            self.first_msn.get_or_insert(header.msn.get());
        }
    }
}

impl Stage {
    /// Makes it the stage of a control that tries these lengths.
    pub(crate) fn into_control(mut self, lengths: Vec<u16>) -> Self {
        self.control = Some(lengths);
        self
    }

    /// Is it the stage of a control?
    pub(crate) fn is_control(&self) -> bool {
        self.control.is_some()
    }

    /// A script is about to send what deviates from a plain exchange. In a control, the plain
    /// exchange takes its place and ends the case.
    pub(crate) async fn deviates(
        &mut self,
        number: u32,
        message: &Message,
        deviation: &Deviation,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        if self.is_control() {
            let Deviation::Startup(legal) = deviation else { return self.instead(number, at).await };
            let expectation = Expectation::preparation(self.target.scaled(ANSWER_SECONDS), at);
            let outcome = self.legal_start_up(number, legal, &expectation).await?;
            let outcome = outcome.map_err(|why| format!("after a legal {}, {why}", legal.name));
            return Err(self.control_is_over(outcome, at));
        }
        match deviation {
            Deviation::Startup(_) => self.log.control.has_startup = true,
            Deviation::Fpdus => {
                let conn = self.conn(number, at)?;
                let octets = match conn.place.has_markers() {
                    true => without_markers(conn.position, &message.octets),
                    false => message.octets.clone(),
                };
                self.log.control.note(&octets);
            }
        }
        Ok(())
    }

    /// The same with an SDP message.
    pub(crate) async fn sdp_deviates(
        &mut self,
        number: u32,
        message: &Message,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        if !self.is_control() {
            let counters = self.talk(number, at)?.counters();
            self.log.control.note_length(UNTAGGED + message.filled(counters).octets.len().min(SEGMENT));
            return Ok(());
        }
        self.instead(number, at).await
    }

    /// The same with a datagram to a port mapper, or from one.
    pub(crate) async fn mapper_deviates(&mut self, at: Option<&SourceLocation>) -> Result<(), Stop> {
        if !self.is_control() {
            self.log.control.note_length(MAPPER_MESSAGE);
            return Ok(());
        }
        self.instead(0, at).await
    }

    /// The plain exchanges of a control, which end the case.
    async fn instead(&mut self, number: u32, at: Option<&SourceLocation>) -> Result<(), Stop> {
        let expectation = Expectation::preparation(self.target.scaled(ANSWER_SECONDS), at);
        let outcome = self.target.service().driver().plain_exchanges(self, number, &expectation).await?;
        Err(self.control_is_over(outcome, at))
    }

    fn control_is_over(&mut self, outcome: Result<(), String>, at: Option<&SourceLocation>) -> Stop {
        self.log.control.outcome = Some(outcome);
        self.decide(Decision {
            verdict: Verdict::Inconclusive,
            requirements: Vec::new(),
            expected: None,
            actual: None,
            explanation: "The control is over.".to_owned(),
            at: at.cloned(),
        })
    }

    /// The lengths of ULPDUs that the control tries.
    pub(super) fn control_lengths(&self) -> Vec<u16> {
        self.control.clone().unwrap_or_default()
    }

    /// Start-up with this frame of the tester, and what the target's service is for, once.
    async fn legal_start_up(
        &mut self,
        number: u32,
        legal: &Message,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        if self.start.is_some() {
            return match self.welcome(number, legal, expectation).await? {
                Ok(opened) => self.target.service().driver().serve(self, number, &opened, expectation).await,
                Err(why) => Ok(Err(why)),
            };
        }
        match self.start_up(number, legal, expectation).await? {
            Ok(started) => self.target.service().driver().work(self, number, &started, expectation).await,
            Err(why) => Ok(Err(why)),
        }
    }

    /// Where a connection is, for a plain exchange on it.
    pub(super) fn place_of(&mut self, number: u32, expectation: &Expectation) -> Result<(Started, Place), Stop> {
        let place = self.conn(number, expectation.at.as_ref())?.place;
        Ok((Started { crc: place.crc, markers: place.markers, rtr: None, ird: None }, place))
    }

    /// The payload of the target's next message.
    pub(super) async fn collect(
        &mut self,
        number: u32,
        started: &Started,
        due: &str,
        expectation: &Expectation,
    ) -> Result<Result<Vec<u8>, String>, Stop> {
        let mut message = Vec::new();
        loop {
            let fpdu = match self.answer(number, started, due, expectation).await? {
                Ok(fpdu) => fpdu,
                Err(why) => return Ok(Err(why)),
            };
            let segment = Segment::parse(ulpdu(&fpdu)).ok();
            let is_message = |segment: &Segment<'_>| segment.ulp_control().opcode() != Opcode::TERMINATE;
            let Some(segment) = segment.filter(is_message) else {
                return Ok(Err(format!("it sent {} where {due} was due", describe::stream(&fpdu))));
            };
            let (Segment::Tagged(_, payload) | Segment::Untagged(_, payload)) = segment;
            message.extend_from_slice(payload);
            if segment.control().last() {
                return Ok(Ok(message));
            }
        }
    }

    /// The target numbers its Sends from 1 (DDP-4.3-7).
    pub(super) fn first_number(&mut self, number: u32) -> Result<(), String> {
        match self.conn(number, None).ok().and_then(|conn| conn.place.first_msn) {
            None | Some(1) => Ok(()),
            Some(msn) => Err(format!("the MSN of its first Send is {msn}")),
        }
    }

    /// Notes in the transcript what the control of this case came to.
    pub(crate) fn note_control(&mut self, text: &str) {
        self.step(0, Direction::Observed, StepKind::Note, format!("control: {text}"), None);
    }
}

impl ControlLog {
    /// A marked step sends these octets.
    fn note(&mut self, octets: &[u8]) {
        let mut rest = octets;
        while let Some(length) = rest.first_chunk().map(|length| u16::from_be_bytes(*length)) {
            self.note_length(usize::from(length));
            rest = rest.get(len_without_markers(length)..).unwrap_or_default();
        }
    }

    /// A marked step sends a ULPDU of so many octets.
    fn note_length(&mut self, length: usize) {
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        if !self.lengths.contains(&length) && self.lengths.len() < MOST_LENGTHS {
            self.lengths.push(length);
        }
    }
}

/// Octets of a stream, from this place of it on, without the markers among them.
pub(super) fn without_markers(position: u64, octets: &[u8]) -> Vec<u8> {
    (position..).zip(octets).filter(|(at, _)| at % MARKER_INTERVAL >= MARKER).map(|(_, octet)| *octet).collect()
}

/// Octets of payload that make a ULPDU of `length` octets behind a header of so many, or a longer
/// one with the same PAD.
pub(super) fn payload_len(mut length: usize, header: usize) -> usize {
    while length < header {
        length += 4;
    }
    length - header
}

/// Octets that differ from place to place.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| b'a' + (place % 23) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correct;

    #[test]
    fn each_length_of_a_marked_step_is_tried_once() {
        let mut log = ControlLog::default();
        let fpdu = |payload: &[u8]| correct::fpdu(&correct::send(1, payload), true);
        log.note(&[fpdu(b"one"), fpdu(b"four"), fpdu(b"two")].concat());
        log.note(&fpdu(b"four")[..7]);
        assert_eq!(log.lengths, [21, 22]);
    }

    #[test]
    fn a_plain_exchange_has_the_same_pad() {
        for length in 0..100usize {
            for header in [UNTAGGED, TAGGED] {
                let made = header + payload_len(length, header);
                assert_eq!((made % 4, made >= length), (length % 4, true));
            }
        }
        assert_eq!(payload_len(21, UNTAGGED), 3);
    }

    #[test]
    fn numbers_follow_what_was_sent() {
        let mut place = Place::default();
        let fpdus = [correct::fpdu(&correct::send(1, b"a"), true), correct::fpdu(&correct::send(2, b"b"), true)];
        assert!(!place.sends(&fpdus.concat()));
        assert_eq!((place.send_msn, place.read_msn, place.crc), (3, 1, false));
        place.started(b"MPA ID Rep Frame\x40\x01\0\0");
        place.receives(&fpdus[0]);
        place.receives(&fpdus[1]);
        assert_eq!((place.crc, place.first_msn), (true, Some(1)));
    }

    #[test]
    fn markers_are_no_part_of_an_fpdu() {
        let ulpdu = correct::send(1, &[b'w'; 600]);
        // From the first octet of the stream, and from one in front of its second marker.
        for position in [0, 500] {
            let marked = correct::fpdu_with_markers(position, &ulpdu, true);
            let plain = without_markers(position, &marked);
            // The CRC covers the markers.
            let end = plain.len() - 4;
            assert_eq!(plain[..end], correct::fpdu(&ulpdu, true)[..end]);
            let mut place = Place { markers: true, ..Place::default() };
            place.sends(&plain);
            assert_eq!(place.send_msn, 2);
        }
    }

    #[test]
    fn a_first_fpdu_with_a_wrong_crc_is_noticed() {
        let mut place = Place::default();
        assert!(!place.sends(b"MPA ID Req Frame\x40\x01\0\0"));
        let bad = correct::fpdu(&correct::send(1, b"a"), false);
        assert!(place.sends(&bad));
        assert!(!place.sends(&bad));
    }
}
