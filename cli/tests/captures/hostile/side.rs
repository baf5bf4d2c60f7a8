//! A [`Side`] is one endpoint. It performs the start-up of MPA, and then uses an RNIC with a Queue
//! Pair and a region.

use weft_core::wire::rdmap::TerminateError;
use weft_peer::memory::{Access, Buffer, PdId, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use weft_peer::mpa::{AfterReply, AfterRequest, MpaSettings, Negotiated, PrivateData, WaitReply, WaitRequest};
use weft_peer::verbs::{
    CqHandle, LlpHandle, LlpSettings, Node, Operation, QpHandle, QpInit, QpModify, QpState, ReceiveWr, RemoteAddress,
    Rnic, RnicSettings, SendWr, Sge, TransmitResult, WorkCompletion,
};
use weft_peer::{Deviations, Instant};

/// Address of the region.
pub(crate) const VA: u64 = 0x10_0000;
/// Length of the region in bytes.
pub(crate) const LENGTH: u32 = 1 << 16;
/// Maximum number of outstanding Reads and Atomic Operations in each direction.
pub(crate) const DEPTH: u16 = 4;

/// The settings of one endpoint.
#[derive(Clone)]
pub(crate) struct Wants {
    pub(crate) mpa: MpaSettings,
    pub(crate) private_data: PrivateData,
    pub(crate) emss: u16,
    pub(crate) deviations: Deviations,
}

enum Mpa {
    Request(WaitRequest),
    Reply(WaitReply),
    Running,
}

pub(crate) struct Side {
    pub(crate) rnic: Rnic,
    pub(crate) pd: PdId,
    pub(crate) other_pd: PdId,
    cq: CqHandle,
    pub(crate) qp: QpHandle,
    pub(crate) buffer: Buffer,
    pub(crate) stag: Stag,
    mpa: Mpa,
    wants: Wants,
    llp: Option<LlpHandle>,
    /// Bytes of start-up frames that wait to be sent.
    frames: Vec<u8>,
    done: bool,
    pub(crate) completions: Vec<WorkCompletion>,
}

/// One output of an endpoint to the wire.
pub(crate) enum Put {
    Octets(Vec<u8>),
    Fin,
    Reset,
}

impl Side {
    pub(crate) fn initiator(wants: Wants) -> Self {
        let mut frames = Vec::new();
        let deviations = wants.deviations.clone();
        let mpa = Mpa::Reply(WaitReply::start(wants.mpa, &wants.private_data, deviations, &mut frames).unwrap());
        Side::new(wants, mpa, frames)
    }

    pub(crate) fn responder(wants: Wants) -> Self {
        let mpa = Mpa::Request(WaitRequest::start(wants.mpa, wants.deviations.clone()));
        Side::new(wants, mpa, Vec::new())
    }

    fn new(wants: Wants, mpa: Mpa, frames: Vec<u8>) -> Self {
        let (mut rnic, privileged) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
        rnic.deviate(wants.deviations.clone());
        let (pd, other_pd) = (rnic.memory_mut().allocate_pd().unwrap(), rnic.memory_mut().allocate_pd().unwrap());
        let cq = rnic.create_cq(1024, None).unwrap().0;
        let mut init = QpInit::new(pd, cq, cq);
        (init.ord, init.ird) = (DEPTH.into(), DEPTH.into());
        let (qp, _, _) = rnic.create_qp(init, Some(&privileged)).unwrap();
        let buffer = rnic.memory_mut().allocate_buffer(LENGTH as usize).unwrap();
        let stag = register(&mut rnic, pd, buffer, Access::ALL);
        let (llp, done, completions) = (None, false, Vec::new());
        Side { rnic, pd, other_pd, cq, qp, buffer, stag, mpa, wants, llp, frames, done, completions }
    }

    /// Registers the complete region once more, and returns the new STag.
    pub(crate) fn register(&mut self, pd: PdId, access: Access) -> u32 {
        register(&mut self.rnic, pd, self.buffer, access).to_bits()
    }

    pub(crate) fn memory(&mut self) -> &mut [u8] {
        self.rnic.memory_mut().buffer_mut(self.buffer).unwrap()
    }

    pub(crate) fn sge(&self, offset: u32, length: u32) -> Sge {
        Sge { stag: self.stag.to_bits(), tagged_offset: VA + u64::from(offset), length }
    }

    /// Returns the address of byte `offset` of the region, as a peer uses it.
    pub(crate) fn remote(&self, offset: u32) -> RemoteAddress {
        RemoteAddress { stag: self.stag.to_bits(), tagged_offset: VA + u64::from(offset) }
    }

    /// Posts an operation. If the Queue Pair is in the Error state, it rejects the operation. This
    /// method ignores the rejection.
    pub(crate) fn post(&mut self, operation: Operation) {
        let _ = self.rnic.post_send(self.qp, vec![SendWr::new(1, operation)]);
    }

    pub(crate) fn post_receive(&mut self, offset: u32, length: u32) {
        let scatter = vec![self.sge(offset, length)];
        let _ = self.rnic.post_receive(self.qp, vec![ReceiveWr { wr_id: 2, scatter }]);
    }

    pub(crate) fn close(&mut self, now: Instant) {
        let _ = self.rnic.modify_qp(now, self.qp, &QpModify::to(QpState::Closing));
    }

    pub(crate) fn state(&self) -> QpState {
        self.rnic.query_qp(self.qp).unwrap().state
    }

    /// Returns the error of the Terminate that this end sent or received, and whether this end sent
    /// it.
    pub(crate) fn terminate(&self) -> Option<(TerminateError, bool)> {
        let record = self.rnic.query_qp(self.qp).unwrap().terminate?;
        Some((record.terminate.error, record.local))
    }

    pub(crate) fn octets(&mut self, now: Instant, octets: &[u8]) {
        self.mpa = match std::mem::replace(&mut self.mpa, Mpa::Running) {
            Mpa::Reply(waiting) => match waiting.handle_octets(octets) {
                Ok(AfterReply::Waiting(more)) => Mpa::Reply(more),
                Ok(AfterReply::Accepted(negotiated, _)) => self.start(now, &negotiated, None),
                Ok(other) => panic!("{other:?}"),
                Err(error) => panic!("{error}"),
            },
            Mpa::Request(waiting) => match waiting.handle_octets(octets) {
                Ok(AfterRequest::Waiting(more)) => Mpa::Request(more),
                Ok(AfterRequest::Arrived(decision)) => {
                    let mut reply = Vec::new();
                    let negotiated = decision.accept(&self.wants.private_data, &mut reply);
                    self.start(now, &negotiated, Some(reply))
                }
                Err(error) => panic!("{error}"),
            },
            Mpa::Running => {
                if let Some(llp) = self.llp {
                    self.rnic.handle_octets(now, llp, octets);
                }
                Mpa::Running
            }
        };
        self.poll();
    }

    fn start(&mut self, now: Instant, negotiated: &Negotiated, reply: Option<Vec<u8>>) -> Mpa {
        let settings = LlpSettings::new(negotiated, self.wants.emss.into());
        let llp = self.rnic.attach_stream(settings).unwrap();
        let depths = negotiated.enhanced.map(|agreed| (agreed.ird.into(), agreed.ord.into())).unzip();
        let modify =
            QpModify { stream_message: reply.map(Into::into), ird: depths.0, ord: depths.1, ..QpModify::to_rts(llp) };
        self.rnic.modify_qp(now, self.qp, &modify).unwrap();
        self.llp = Some(llp);
        Mpa::Running
    }

    pub(crate) fn fin(&mut self, now: Instant) {
        if let Some(llp) = self.llp {
            self.rnic.handle_fin(now, llp);
        }
        self.poll();
    }

    pub(crate) fn reset(&mut self, now: Instant) {
        if let Some(llp) = self.llp {
            self.rnic.handle_reset(now, llp);
        }
        self.poll();
    }

    /// Handles the deadlines up to `now`.
    pub(crate) fn pass(&mut self, now: Instant) {
        if let Some(llp) = self.llp {
            self.rnic.handle_timeout(now, llp);
        }
        self.poll();
    }

    fn poll(&mut self) {
        while let Ok(completion) = self.rnic.poll_cq(self.cq) {
            self.completions.push(completion);
        }
    }

    /// Returns the next output of this end.
    pub(crate) fn put(&mut self, now: Instant) -> Option<Put> {
        if self.done {
            return None;
        }
        if !self.frames.is_empty() {
            return Some(Put::Octets(std::mem::take(&mut self.frames)));
        }
        let mut octets = Vec::new();
        let sent = self.rnic.poll_transmit(now, self.llp?, |slices| {
            slices.iter().for_each(|slice| octets.extend_from_slice(slice));
            octets.len()
        });
        self.poll();
        match sent {
            TransmitResult::Nothing => None,
            TransmitResult::Octets(_) => Some(Put::Octets(octets)),
            TransmitResult::Fin => Some(Put::Fin),
            TransmitResult::Reset => {
                self.done = true;
                Some(Put::Reset)
            }
        }
    }
}

fn register(rnic: &mut Rnic, pd: PdId, buffer: Buffer, access: Access) -> Stag {
    let list = PhysicalBufferList::of(buffer, 0, buffer.len() as u64, 4096);
    let registration = Registration { pd, key: StagKey(0x11), list, base: ToBase::VaBased(VA), remote: true, access };
    rnic.memory_mut().register(&registration).unwrap().stag
}
