//! Start-up in streaming mode: from an established TCP connection until iWARP begins, in each
//! profile (section 8.1.1 of the SDP draft). Request and Reply are the MPA start-up frames.
//!
//! ```text
//! profile        Connecting Peer sends   then
//! swapped        Hello                   receives a Request, and answers it as MPA Responder
//! bare           Hello                   receives FPDUs
//! natural,       Hello, Request          receives a Reply
//! enhanced
//! private-data   Request (Hello)         receives a Reply (HelloAck). A Reply without private
//!                                        data is accepted, too; HelloAck is then the first Send
//!
//! Accepting Peer receives   profile
//! Hello, Request            natural or enhanced
//! Hello, no Request         as configured: sends its own Request (swapped), or no frame (bare)
//! Request (Hello)           private-data
//! ```
//!
//! This module sends HelloAck only in the private-data profile. In all other profiles HelloAck is
//! the first message of iWARP.

use weft_core::wire::mpa::startup::{HEADER_LEN, MAX_PD_LENGTH};

use super::hello::{self, Agreed, HELLO_LEN, Refusal};
use super::{BareSettings, Profile, Role, Settings, Start};
use crate::hostile::Deviations;
use crate::mpa::{
    AfterReply, AfterRequest, MpaSettings, Negotiated, PrivateData, RtrKinds, StartupError, WaitReply, WaitRequest,
};

/// The state of start-up.
#[derive(Debug)]
pub(super) struct Startup {
    role: Role,
    settings: Settings,
    state: State,
    /// Bytes that arrived and have not been processed yet.
    kept: Vec<u8>,
    /// The part of the current MPA frame that has been read.
    cut: FrameCut,
    /// Values from the peer's Hello or HelloAck. `None` until this side has checked the message.
    agreed: Option<Agreed>,
}

/// What start-up waits for.
#[derive(Debug)]
enum State {
    /// The Connecting Peer has sent only a Hello. The first byte that arrives decides the profile.
    WaitFirst,
    /// This side is MPA Responder and waits for the Request.
    WaitRequest(WaitRequest),
    /// This side is MPA Initiator and waits for the Reply.
    WaitReply(WaitReply),
    /// The Accepting Peer waits for the Hello.
    WaitHello,
    /// The Accepting Peer has a valid Hello. A Request can follow.
    WaitMaybeRequest,
    Closed,
}

/// Result of the processing of received bytes.
#[derive(Debug)]
pub(super) enum Progress {
    /// More bytes are needed.
    Waiting,
    /// iWARP begins. `agreed` has the values from the peer's Hello, or from a HelloAck in private
    /// data. `acknowledged` is set if HelloAck was exchanged as private data.
    Started { start: Box<Start>, agreed: Option<Agreed>, acknowledged: bool },
    /// This side rejects a Hello that arrived as private data. `reply` is the rejecting MPA Reply,
    /// which reports the rejection (MPA-7.1.2-7).
    Rejected { reply: Vec<u8>, refusal: Refusal },
}

impl Startup {
    /// Starts as Connecting Peer. The bytes to send are appended to `out`.
    pub(super) fn connect(settings: Settings, out: &mut Vec<u8>) -> Self {
        let hello = hello::hello(&settings);
        let mpa = settings.profile.mpa(settings.mpa);
        let state = match settings.profile {
            Profile::Swapped | Profile::Bare => {
                out.extend_from_slice(&hello);
                State::WaitFirst
            }
            Profile::Natural | Profile::Enhanced => {
                out.extend_from_slice(&hello);
                initiate(mpa, Vec::new(), out)
            }
            Profile::PrivateData => initiate(mpa, hello, out),
        };
        Startup::new(Role::Connecting, settings, state)
    }

    /// Starts as Accepting Peer.
    pub(super) fn accept(settings: Settings) -> Self {
        Startup::new(Role::Accepting, settings, State::WaitHello)
    }

    fn new(role: Role, settings: Settings, state: State) -> Self {
        Startup { role, settings, state, kept: Vec::new(), cut: FrameCut::default(), agreed: None }
    }

    /// Returns whether the Hello is complete and a Request can still follow.
    pub(super) fn waits_for_request(&self) -> bool {
        matches!(self.state, State::WaitMaybeRequest)
    }

    /// Processes bytes that TCP delivered.
    pub(super) fn handle_octets(&mut self, octets: &[u8]) -> Result<Progress, Refusal> {
        self.kept.extend_from_slice(octets);
        loop {
            match std::mem::replace(&mut self.state, State::Closed) {
                State::WaitFirst => {
                    let Some(first) = self.kept.first() else {
                        self.state = State::WaitFirst;
                        return Ok(Progress::Waiting);
                    };
                    // An FPDU with HelloAck begins with ULPDU_Length 46, so its first byte is 0. A
                    // marker also begins with 0. A Request begins with `M`.
                    match *first {
                        0 => return Ok(self.bare()),
                        b'M' => {}
                        // The peer uses neither SDP nor MPA. It is, for example, a plain TCP
                        // program.
                        _ => return Err(Refusal::Other { receiver: Role::Connecting }),
                    }
                    self.state = State::WaitMaybeRequest;
                }
                State::WaitHello => {
                    if self.kept.starts_with(b"MPA ") {
                        self.state = State::WaitMaybeRequest;
                        continue;
                    }
                    if self.kept.len() < HELLO_LEN {
                        self.state = State::WaitHello;
                        return Ok(Progress::Waiting);
                    }
                    let hello: Vec<u8> = self.kept.drain(..HELLO_LEN).collect();
                    self.agreed = Some(hello::judge_hello(&hello, &self.settings)?);
                    self.state = State::WaitMaybeRequest;
                    if self.kept.is_empty() {
                        return Ok(Progress::Waiting);
                    }
                }
                State::WaitMaybeRequest => {
                    let mpa = Profile::accepting_mpa(self.settings.mpa);
                    self.state = State::WaitRequest(WaitRequest::start(mpa, Deviations::default()));
                }
                State::WaitRequest(wait) => {
                    let frame = self.cut.take(&mut self.kept);
                    match wait.handle_octets(&frame).map_err(Refusal::Mpa)? {
                        AfterRequest::Waiting(more) => {
                            self.state = State::WaitRequest(more);
                            return Ok(Progress::Waiting);
                        }
                        AfterRequest::Arrived(decision) => {
                            let mut acknowledged = false;
                            let mut hello_ack = Vec::new();
                            if self.is_accepting() && self.agreed.is_none() {
                                // The Connecting Peer is MPA Initiator, and the private data is
                                // its Hello.
                                let hello = decision.request().private_data.as_octets();
                                let agreed = match hello::judge_hello(hello, &self.settings) {
                                    Ok(agreed) => agreed,
                                    Err(refusal) => {
                                        let mut reply = Vec::new();
                                        decision.reject(&PrivateData::default(), &mut reply);
                                        return Ok(Progress::Rejected { reply, refusal });
                                    }
                                };
                                hello_ack = hello::hello_ack(&self.settings, self.recv_size(&agreed), &agreed);
                                self.agreed = Some(agreed);
                                acknowledged = true;
                            }
                            let private_data = PrivateData::new(hello_ack).unwrap_or_default();
                            let mut last = Vec::new();
                            let negotiated = decision.accept(&private_data, &mut last);
                            return Ok(self.started(negotiated, last, acknowledged));
                        }
                    }
                }
                State::WaitReply(wait) => {
                    let frame = self.cut.take(&mut self.kept);
                    match wait.handle_octets(&frame).map_err(Refusal::Mpa)? {
                        AfterReply::Waiting(more) => {
                            self.state = State::WaitReply(more);
                            return Ok(Progress::Waiting);
                        }
                        AfterReply::Accepted(negotiated, frame) => {
                            let mut acknowledged = false;
                            let ack = frame.private_data.as_octets();
                            // Without private data in the Reply, HelloAck is the peer's first Send.
                            let is_here = self.settings.profile == Profile::PrivateData && !ack.is_empty();
                            if !self.is_accepting() && is_here {
                                self.agreed = Some(hello::judge_hello_ack(ack, &self.settings)?);
                                acknowledged = true;
                            }
                            return Ok(self.started(negotiated, Vec::new(), acknowledged));
                        }
                        AfterReply::Unacceptable(_, _, error) => return Err(Refusal::Setup(error)),
                        AfterReply::Rejected(_) => return Err(Refusal::Rejected),
                    }
                }
                State::Closed => return Ok(Progress::Waiting),
            }
        }
    }

    /// Continues when no Request has arrived after the Hello. The configured profile decides what
    /// this side sends.
    pub(super) fn no_request(&mut self, out: &mut Vec<u8>) -> Progress {
        if self.settings.profile == Profile::Bare {
            self.state = State::Closed;
            return self.bare();
        }
        let mpa = Profile::accepting_mpa(self.settings.mpa);
        self.state = initiate(mpa, Vec::new(), out);
        Progress::Waiting
    }

    /// Returns the refusal to report if TCP ends during start-up.
    pub(super) fn cut_short(&self) -> Refusal {
        Refusal::Mpa(StartupError::CutShort { received: self.kept.len() })
    }

    /// Size of this side's Private Buffers in bytes. The size follows the peer's DesRemRcvSz within
    /// the limits of the settings (SDP-6.2.1.4-1).
    pub(super) fn recv_size(&self, agreed: &Agreed) -> u32 {
        agreed.des_rem_rcv_sz.clamp(self.settings.recv_size, self.settings.max_recv_size)
    }

    fn is_accepting(&self) -> bool {
        self.role == Role::Accepting
    }

    fn bare(&mut self) -> Progress {
        let BareSettings { version, framing_sent, framing_received } = self.settings.bare;
        let start = Start {
            negotiated: None,
            version,
            framing_sent,
            framing_received,
            speaks_first: true,
            rtr: RtrKinds::NONE,
            last: Vec::new(),
            unread: std::mem::take(&mut self.kept),
        };
        Progress::Started { start: Box::new(start), agreed: self.agreed, acknowledged: false }
    }

    fn started(&mut self, negotiated: Negotiated, last: Vec<u8>, acknowledged: bool) -> Progress {
        // In the natural profile this side sends HelloAck before it has received an FPDU.
        let silent_peer = self.is_accepting() && !acknowledged && negotiated.enhanced.is_none();
        let initiator = negotiated.role == crate::mpa::Role::Initiator;
        let start = Start {
            negotiated: Some(negotiated),
            version: negotiated.version,
            framing_sent: negotiated.framing_sent(),
            framing_received: negotiated.framing_received(),
            speaks_first: initiator || silent_peer,
            rtr: negotiated.rtr,
            last,
            unread: std::mem::take(&mut self.kept),
        };
        Progress::Started { start: Box::new(start), agreed: self.agreed, acknowledged }
    }
}

fn initiate(mpa: MpaSettings, private_data: Vec<u8>, out: &mut Vec<u8>) -> State {
    // A Hello always fits into the private data of a Request.
    let private_data = PrivateData::new(private_data).unwrap_or_default();
    WaitReply::start(mpa, &private_data, Deviations::default(), out).map_or(State::Closed, State::WaitReply)
}

/// Removes one MPA start-up frame from the start of a stream. The MPA code must not receive the
/// bytes after the frame, because in some profiles an FPDU follows immediately.
#[derive(Debug, Default)]
struct FrameCut {
    header: Vec<u8>,
    body: usize,
}

impl FrameCut {
    /// Removes from `stream` the bytes that belong to the frame, and returns them.
    fn take(&mut self, stream: &mut Vec<u8>) -> Vec<u8> {
        let header = (HEADER_LEN - self.header.len()).min(stream.len());
        let mut taken: Vec<u8> = stream.drain(..header).collect();
        self.header.extend_from_slice(&taken);
        if let [.., high, low] = self.header[..]
            && self.header.len() == HEADER_LEN
        {
            let length = usize::from(u16::from_be_bytes([high, low]).min(MAX_PD_LENGTH));
            let body = (length - self.body).min(stream.len());
            self.body += body;
            taken.extend(stream.drain(..body));
        }
        taken
    }
}
