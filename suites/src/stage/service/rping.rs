//! `rping`. The good exchange is one round of rping. The tester is rping's client, or its server if
//! the target is the client.
//!
//! In a round, the client sends the address of its data, and the server reads the data. Then the
//! client sends the address of its sink, and the server writes the data there. The server sends a
//! go-ahead after each half. A script that observes or breaks a step does this step itself. This
//! file has the correct round.

use std::net::SocketAddr;
use std::time::Duration;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_peer::Settings;
use weft_peer::driver::cm::CmSettings;
use weft_peer::driver::device::random_seed;
use weft_peer::driver::{Device, VirtualLink};
use weft_peer::memory::MemorySettings;
use weft_peer::verbs::{Node, RemoteAddress, RnicSettings};
use weft_peer::workload::ping::{self, Advertisement, text};

use super::{
    AcceptedStartUp, Client, Expectation, Operation, Outcome, RdmaSide, ServiceDriver, Stage, StartUpResult, Stop,
    TaggedBuffer,
};
use crate::correct;
use crate::model::Capability;
use crate::stage::Message;
use crate::stage::deviation::{TAGGED, pattern, payload_len};
use crate::stage::{NoFrame, describe, ulpdu};
use crate::targets::OpenError;

/// The addresses of the tester's buffers.
const SOURCE: RemoteAddress = RemoteAddress { stag: 0x7765_6601, tagged_offset: 0x1000 };
const SINK: RemoteAddress = RemoteAddress { stag: 0x7765_6602, tagged_offset: 0x2000 };
/// The STag of the buffer that a plain exchange reads into.
const PLAIN_SINK_STAG: u32 = 0x7765_6604;
/// Maximum payload of a segment in bytes. A segment of this size fits into a frame of any Ethernet.
const SEGMENT: usize = 1024;
/// Size of a round in bytes: rping's own default.
const ROUND: u32 = 64;
/// Pause between two rounds of the builtin client, so that an endless client causes little load.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Rping;

impl ServiceDriver for Rping {
    fn name(&self) -> &'static str {
        "rping"
    }

    fn capability(&self) -> Option<Capability> {
        Some(Capability::Rping)
    }

    fn good_exchange_text(&self) -> &'static str {
        "a good exchange: start-up, and a round of rping"
    }

    fn operates(&self) -> bool {
        true
    }

    fn work<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        started: &'s StartUpResult,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move {
            match stage.rdma().read_half(number, started, ROUND, expectation).await? {
                Ok(operation) => stage.rdma().write_half(number, started, operation.msn, ROUND, expectation).await,
                Err(why) => Ok(Err(why)),
            }
        })
    }

    fn operate<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        started: &'s StartUpResult,
        expectation: &'s Expectation,
    ) -> Outcome<'s, Operation> {
        Box::pin(async move { stage.rdma().read_half(number, started, ROUND, expectation).await })
    }

    fn buffer_of(&self, first_send: &[u8]) -> Result<Option<TaggedBuffer>, String> {
        let advertisement = Advertisement::parse(first_send).ok_or("its first Send is not a message of rping")?;
        let RemoteAddress { stag, tagged_offset } = advertisement.address;
        Ok(Some(TaggedBuffer { stag, tagged_offset, length: advertisement.size }))
    }

    fn serve<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        opened: &'s AcceptedStartUp,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        match opened.buffer {
            Some(source) => {
                Box::pin(async move { stage.rdma().serve_rping(number, &opened.started, source, expectation).await })
            }
            None => Box::pin(async move { stage.rdma().echo_at(number, &opened.started, 1, expectation).await }),
        }
    }

    fn plain_exchange<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        length: u16,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move {
            let (started, progress) = stage.rdma().progress(number, expectation)?;
            match progress.buffer {
                Some(buffer) => stage.rdma().write_and_read(number, &started, buffer, length, expectation).await,
                // Before rping's first Read no buffer is known. Then the first Send and this Read
                // are the plain exchange.
                None if !progress.has_sent => {
                    Ok(stage.rdma().read_half(number, &started, ROUND, expectation).await?.map(|_| ()))
                }
                // In the middle of a round, rping allows no plain exchange.
                None => Ok(Ok(())),
            }
        })
    }

    fn responder(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        Ok(VirtualLink::rping(settings)?)
    }

    fn initiator(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        Ok(VirtualLink::rping_client(settings)?)
    }

    fn client(&self, address: SocketAddr, settings: Settings) -> Client {
        Box::pin(async move {
            let memory = MemorySettings { stag_seed: random_seed(), ..MemorySettings::default() };
            let (mut rnic, _) =
                Node::new(["weft0"]).open("weft0", RnicSettings { memory, ..RnicSettings::default() })?;
            rnic.deviate(settings.deviations.clone());
            let device = Device::new(rnic);
            let mut client = ping::Client::new(&device, ROUND, false)?;
            let (mpa, startup_timeout) = (settings.mpa, settings.startup_timeout);
            client.connect(address, CmSettings { mpa, startup_timeout, ..CmSettings::default() }).await?;
            loop {
                client.round().await?;
                tokio::time::sleep(PAUSE).await;
            }
        })
    }
}

impl RdmaSide<'_> {
    /// Does the first half of a round as client: the target reads `size` bytes and sends its
    /// go-ahead.
    async fn read_half(
        &mut self,
        number: u32,
        started: &StartUpResult,
        size: u32,
        expectation: &Expectation,
    ) -> Result<Result<Operation, String>, Stop> {
        let msn =
            match self.first_send(number, started, &Advertisement { address: SOURCE, size }.emit(), expectation).await?
            {
                Ok(msn) => msn,
                Err(why) => return Ok(Err(why)),
            };
        let fpdu = match self.answer(number, started, "its Read Request", expectation).await? {
            Ok(fpdu) => fpdu,
            Err(why) => return Ok(Err(why)),
        };
        let Some(read) = read_request(&fpdu) else {
            return Ok(Err(format!("it sent {} where its Read Request was expected", describe::stream(&fpdu))));
        };
        let wanted = (SOURCE.stag, SOURCE.tagged_offset, size);
        if (read.src_stag, read.src_to, read.rdmardsz) != wanted {
            return Ok(Err("its Read Request does not request the advertised bytes".into()));
        }
        let data = text(0, size);
        let segments = correct::read_response(read.sink_stag, read.sink_to, &data, SEGMENT);
        for segment in segments {
            self.send_ulpdu(number, "Read Response", &segment, started, expectation).await?;
        }
        let go_ahead = self.answer(number, started, "its go-ahead after the Read", expectation).await?;
        if let Err(why) = go_ahead.and_then(|fpdu| is_go_ahead(&fpdu)) {
            return Ok(Err(why));
        }
        let length = self.connections.target.description.rping_size;
        let buffer = TaggedBuffer { stag: read.sink_stag, tagged_offset: read.sink_to, length };
        Ok(Ok(Operation { msn: msn + 1, buffer: Some(buffer), ird: started.ird }))
    }

    /// Does the second half of a round as client: the target writes the data and sends its
    /// go-ahead.
    async fn write_half(
        &mut self,
        number: u32,
        started: &StartUpResult,
        msn: u32,
        size: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        let advertisement = correct::send(msn, &Advertisement { address: SINK, size }.emit());
        self.send_ulpdu(number, "Send", &advertisement, started, expectation).await?;
        let mut written = Vec::new();
        loop {
            let fpdu = match self.answer(number, started, "its Write", expectation).await? {
                Ok(fpdu) => fpdu,
                Err(why) => return Ok(Err(why)),
            };
            let Some(last) = take_tagged(&fpdu, Opcode::WRITE, SINK, &mut written) else {
                return Ok(Err(format!("it sent {} where its Write was expected", describe::stream(&fpdu))));
            };
            if last {
                break;
            }
        }
        if written != text(0, size) {
            return Ok(Err("it wrote different bytes than it had read".into()));
        }
        let go_ahead = self.answer(number, started, "its go-ahead after the Write", expectation).await?;
        Ok(go_ahead.and_then(|fpdu| is_go_ahead(&fpdu)))
    }

    /// Returns whether a server of rping accepts a byte after the end of the buffer that the target
    /// file describes. `within` is the time for each answer.
    pub(in crate::stage) async fn takes_byte_after_buffer(
        &mut self,
        number: u32,
        within: Duration,
    ) -> Result<Result<bool, String>, Stop> {
        let expectation = Expectation::preparation(within, None);
        let request = Message::new("MPA Request", correct::startup(&self.connections.target.description.request));
        let started = match self.start_up(number, &request, &expectation).await? {
            Ok(started) => started,
            Err(why) => return Ok(Err(why)),
        };
        let buffer = match self.read_half(number, &started, ROUND, &expectation).await? {
            Ok(operation) => operation.buffer,
            Err(why) => return Ok(Err(why)),
        };
        let Some(TaggedBuffer { stag, tagged_offset, length }) = buffer else { return Ok(Ok(false)) };
        let end = tagged_offset.wrapping_add(u64::from(length));
        for segment in correct::tagged(Opcode::WRITE, stag, end, &[0], SEGMENT) {
            self.send_ulpdu(number, "Write", &segment, &started, &expectation).await?;
        }
        let answer = self.connections.fpdu(number, self.connections.link.now() + within, None).await?;
        self.connections.abort(number, None).await?;
        Ok(Ok(matches!(answer, Err(NoFrame::TimedOut))))
    }

    /// Writes to a buffer of the target and reads it back.
    async fn write_and_read(
        &mut self,
        number: u32,
        started: &StartUpResult,
        buffer: TaggedBuffer,
        length: u16,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        let most = usize::try_from(buffer.length).unwrap_or(usize::MAX);
        let data = pattern(payload_len(usize::from(length), TAGGED).min(most));
        let (stag, to) = (buffer.stag, buffer.tagged_offset);
        for segment in correct::tagged(Opcode::WRITE, stag, to, &data, usize::from(u16::MAX)) {
            self.send_ulpdu(number, "Write", &segment, started, expectation).await?;
        }
        let rdmardsz = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let read = ReadRequest { sink_stag: PLAIN_SINK_STAG, sink_to: 0, rdmardsz, src_stag: stag, src_to: to };
        let (_, progress) = self.progress(number, expectation)?;
        let request = correct::read_request(progress.read_msn, &read);
        self.send_ulpdu(number, "Read Request", &request, started, expectation).await?;
        let answer = self.collect(number, started, "its Read Response", expectation).await?;
        Ok(answer.and_then(|answer| match answer == data {
            true => Ok(()),
            false => Err(format!("a Read of {} bytes returns different bytes than were written", data.len())),
        }))
    }

    /// Does a round as server: a Read, a go-ahead, a Write, and another go-ahead. `source` is the
    /// buffer that the client advertised.
    async fn serve_rping(
        &mut self,
        number: u32,
        started: &StartUpResult,
        source: TaggedBuffer,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        if source.length > MAX_ROUND {
            return Ok(Err(format!(
                "it advertised a buffer of {} bytes, but a buffer of rping has {MAX_ROUND} at most",
                source.length
            )));
        }
        let read = ReadRequest {
            sink_stag: DATA.stag,
            sink_to: DATA.tagged_offset,
            rdmardsz: source.length,
            src_stag: source.stag,
            src_to: source.tagged_offset,
        };
        self.send_ulpdu(number, "Read Request", &correct::read_request(1, &read), started, expectation).await?;
        let mut data = Vec::new();
        loop {
            let fpdu = match self.answer(number, started, "its Read Response", expectation).await? {
                Ok(fpdu) => fpdu,
                Err(why) => return Ok(Err(why)),
            };
            match take_tagged(&fpdu, Opcode::READ_RESPONSE, DATA, &mut data) {
                Some(true) => break,
                Some(false) => {}
                None => {
                    return Ok(Err(format!(
                        "it sent {} where its Read Response was expected",
                        describe::stream(&fpdu)
                    )));
                }
            }
        }
        if data.len() != source.length as usize {
            return Ok(Err(format!(
                "its Read Response has {} bytes, and {} were requested",
                data.len(),
                source.length
            )));
        }
        self.send_ulpdu(number, "Send, go ahead", &correct::send(1, &GO_AHEAD), started, expectation).await?;
        let second = match self.answer(number, started, "its second Send", expectation).await? {
            Ok(fpdu) => fpdu,
            Err(why) => return Ok(Err(why)),
        };
        let sink = match Segment::parse(ulpdu(&second)) {
            Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() => {
                Advertisement::parse(payload)
            }
            _ => None,
        };
        let Some(sink) = sink.filter(|sink| sink.size as usize >= data.len()) else {
            return Ok(Err(format!("it sent {} where it had to advertise its sink", describe::stream(&second))));
        };
        let segments = correct::tagged(Opcode::WRITE, sink.address.stag, sink.address.tagged_offset, &data, SEGMENT);
        for segment in segments {
            self.send_ulpdu(number, "Write", &segment, started, expectation).await?;
        }
        self.send_ulpdu(number, "Send, go ahead", &correct::send(2, &GO_AHEAD), started, expectation).await?;
        Ok(Ok(()))
    }
}

/// Address of the server's buffer.
const DATA: RemoteAddress = RemoteAddress { stag: 0x7765_6603, tagged_offset: 0x3000 };
/// The payload of a go-ahead.
const GO_AHEAD: [u8; 16] = [0; 16];
/// Maximum size in bytes of a round that a server of `rping -s` accepts.
const MAX_ROUND: u32 = 65_535;

fn read_request(fpdu: &[u8]) -> Option<ReadRequest> {
    match Segment::parse(ulpdu(fpdu)).ok()? {
        Segment::Untagged(header, payload) if header.ulp_control.opcode() == Opcode::READ_REQUEST => {
            ReadRequest::parse(payload).ok()
        }
        _ => None,
    }
}

fn is_go_ahead(fpdu: &[u8]) -> Result<(), String> {
    match Segment::parse(ulpdu(fpdu)) {
        Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() && payload.len() == 16 => {
            Ok(())
        }
        _ => Err(format!("it sent {} where its go-ahead was expected", describe::stream(fpdu))),
    }
}

/// Appends the next segment of a message to `came`. Returns whether the segment is the last one, or
/// `None` if the FPDU is not such a segment.
fn take_tagged(fpdu: &[u8], opcode: Opcode, to: RemoteAddress, came: &mut Vec<u8>) -> Option<bool> {
    let Ok(Segment::Tagged(header, payload)) = Segment::parse(ulpdu(fpdu)) else { return None };
    let next = to.tagged_offset + came.len() as u64;
    let goes_on = header.stag.get() == to.stag && (header.tagged_offset.get() == next || payload.is_empty());
    if !goes_on || header.ulp_control.opcode() != opcode {
        return None;
    }
    came.extend_from_slice(payload);
    Some(header.control.last())
}
