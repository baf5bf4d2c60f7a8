//! `rping`. The good exchange is one round of rping. The tester is rping's client, or its server if
//! the target is the client.
//!
//! In a round, the client sends the address of its data, and the server reads the data. Then the
//! client sends the address of its sink, and the server writes the data there. The server sends a
//! go-ahead after each half. If a script observes or breaks a step, the script does this step
//! itself. This file implements the correct round.

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
    Attempt, Client, Exchange, Expectation, Operation, Outcome, RdmaSide, ServiceDriver, ServiceFacts, Stage,
    TaggedBuffer,
};
use crate::correct;
use crate::model::Capability;
use crate::stage::Message;
use crate::stage::deviation::{TAGGED, pattern, payload_len};
use crate::stage::rdma::unexpected;
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
    fn facts(&self) -> ServiceFacts {
        let text = "a good exchange: start-up, and a round of rping";
        ServiceFacts { operates: true, ..ServiceFacts::new("rping", Some(Capability::Rping), text) }
    }

    fn work<'s>(&'s self, mut exchange: Exchange<'s>) -> Outcome<'s> {
        Box::pin(async move {
            let operation = exchange.read_half(ROUND).await?;
            exchange.write_half(operation.msn, ROUND).await
        })
    }

    fn operate<'s>(&'s self, mut exchange: Exchange<'s>) -> Outcome<'s, Operation> {
        Box::pin(async move { exchange.read_half(ROUND).await })
    }

    fn buffer_of(&self, first_send: &[u8]) -> Result<Option<TaggedBuffer>, String> {
        let advertisement = Advertisement::parse(first_send).ok_or("its first Send is not a message of rping")?;
        let RemoteAddress { stag, tagged_offset } = advertisement.address;
        Ok(Some(TaggedBuffer { stag, tagged_offset, length: advertisement.size }))
    }

    fn serve<'s>(&'s self, mut exchange: Exchange<'s>, buffer: Option<TaggedBuffer>) -> Outcome<'s> {
        Box::pin(async move {
            match buffer {
                Some(source) => exchange.serve_rping(source).await,
                None => exchange.echo_at(1).await,
            }
        })
    }

    fn plain_exchange<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        length: u16,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move {
            let (started, progress) = stage.rdma(number).progress()?;
            let mut exchange = stage.connections.exchange(number, started, expectation);
            match progress.buffer {
                Some(buffer) => exchange.write_and_read(progress.read_msn, buffer, length).await,
                // Before rping's first Read, no buffer is known. In that state, the first Send and
                // this Read are the plain exchange.
                None if !progress.has_sent => exchange.read_half(ROUND).await.map(|_| ()),
                // In the middle of a round, rping allows no plain exchange.
                None => Ok(()),
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

impl Exchange<'_> {
    /// Does the first half of a round as client: the target reads `size` bytes and sends its
    /// go-ahead.
    async fn read_half(&mut self, size: u32) -> Attempt<Operation> {
        let msn = self.first_send(&Advertisement { address: SOURCE, size }.emit()).await?;
        let due = "its Read Request";
        let fpdu = self.answer(due).await?;
        let read = read_request(&fpdu).ok_or_else(|| unexpected(&fpdu, due))?;
        let wanted = (SOURCE.stag, SOURCE.tagged_offset, size);
        if (read.src_stag, read.src_to, read.rdmardsz) != wanted {
            return Err("its Read Request does not request the advertised bytes".into());
        }
        for segment in correct::read_response(read.sink_stag, read.sink_to, &text(0, size), SEGMENT) {
            self.send("Read Response", &segment).await?;
        }
        check_go_ahead(&self.answer("its go-ahead after the Read").await?)?;
        let length = self.connections.target.description.rping_size;
        let buffer = TaggedBuffer { stag: read.sink_stag, tagged_offset: read.sink_to, length };
        Ok(Operation { msn: msn + 1, buffer: Some(buffer), ird: self.started.ird })
    }

    /// Does the second half of a round as client: the target writes the data and sends its
    /// go-ahead.
    async fn write_half(&mut self, msn: u32, size: u32) -> Attempt {
        self.send("Send", &correct::send(msn, &Advertisement { address: SINK, size }.emit())).await?;
        if self.tagged_message(Opcode::WRITE, SINK, "its Write").await? != text(0, size) {
            return Err("it wrote different bytes than it had read".into());
        }
        check_go_ahead(&self.answer("its go-ahead after the Write").await?)
    }

    /// Waits for all segments of a tagged message. Returns its data.
    async fn tagged_message(&mut self, opcode: Opcode, to: RemoteAddress, due: &str) -> Attempt<Vec<u8>> {
        let mut data = Vec::new();
        loop {
            let fpdu = self.answer(due).await?;
            if take_tagged(&fpdu, opcode, to, &mut data).ok_or_else(|| unexpected(&fpdu, due))? {
                return Ok(data);
            }
        }
    }

    /// Writes to a buffer of the target and reads it back. `msn` is the MSN of the Read Request.
    async fn write_and_read(&mut self, msn: u32, buffer: TaggedBuffer, length: u16) -> Attempt {
        let most = usize::try_from(buffer.length).unwrap_or(usize::MAX);
        let data = pattern(payload_len(usize::from(length), TAGGED).min(most));
        let (stag, to) = (buffer.stag, buffer.tagged_offset);
        for segment in correct::tagged(Opcode::WRITE, stag, to, &data, usize::from(u16::MAX)) {
            self.send("Write", &segment).await?;
        }
        let rdmardsz = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let read = ReadRequest { sink_stag: PLAIN_SINK_STAG, sink_to: 0, rdmardsz, src_stag: stag, src_to: to };
        self.send("Read Request", &correct::read_request(msn, &read)).await?;
        if self.collect("its Read Response").await? != data {
            return Err(format!("a Read of {} bytes returns different bytes than were written", data.len()).into());
        }
        Ok(())
    }

    /// Does a round as server: a Read, a go-ahead, a Write, and another go-ahead. `source` is the
    /// buffer that the client advertised.
    async fn serve_rping(&mut self, source: TaggedBuffer) -> Attempt {
        let size = source.length;
        if size > MAX_ROUND {
            let most = format!("a buffer of rping has at most {MAX_ROUND} bytes");
            return Err(format!("it advertised a buffer of {size} bytes, but {most}").into());
        }
        let read = ReadRequest {
            sink_stag: DATA.stag,
            sink_to: DATA.tagged_offset,
            rdmardsz: size,
            src_stag: source.stag,
            src_to: source.tagged_offset,
        };
        self.send("Read Request", &correct::read_request(1, &read)).await?;
        let data = self.tagged_message(Opcode::READ_RESPONSE, DATA, "its Read Response").await?;
        if data.len() != size as usize {
            return Err(format!("its Read Response has {} bytes, and {size} were requested", data.len()).into());
        }
        self.send("Send, go ahead", &correct::send(1, &GO_AHEAD)).await?;
        let second = self.answer("its second Send").await?;
        let sink = match Segment::parse(ulpdu(&second)) {
            Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() => {
                Advertisement::parse(payload)
            }
            _ => None,
        };
        let Some(sink) = sink.filter(|sink| sink.size as usize >= data.len()) else {
            let sent = describe::stream(&second);
            return Err(format!("it sent {sent} when it had to advertise its sink buffer").into());
        };
        for segment in correct::tagged(Opcode::WRITE, sink.address.stag, sink.address.tagged_offset, &data, SEGMENT) {
            self.send("Write", &segment).await?;
        }
        self.send("Send, go ahead", &correct::send(2, &GO_AHEAD)).await?;
        Ok(())
    }
}

impl RdmaSide<'_> {
    /// Returns whether a server of rping accepts a Write of one byte after the end of the buffer
    /// that the target file describes. `within` is the time for each answer.
    pub(in crate::stage) async fn takes_byte_after_buffer(&mut self, within: Duration) -> Attempt<bool> {
        let expectation = Expectation::preparation(within);
        let request = Message::new("MPA Request", correct::startup(&self.connections.target.description.request));
        let started = self.start_up(&request, &expectation).await?;
        let mut exchange = self.connections.exchange(self.number, started, &expectation);
        let Some(TaggedBuffer { stag, tagged_offset, length }) = exchange.read_half(ROUND).await?.buffer else {
            return Ok(false);
        };
        let end = tagged_offset.wrapping_add(u64::from(length));
        for segment in correct::tagged(Opcode::WRITE, stag, end, &[0], SEGMENT) {
            exchange.send("Write", &segment).await?;
        }
        let answer = self.connections.fpdu(self.number, self.connections.link.now() + within).await?;
        self.connections.abort(self.number).await?;
        Ok(matches!(answer, Err(NoFrame::TimedOut)))
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

fn check_go_ahead(fpdu: &[u8]) -> Attempt {
    match Segment::parse(ulpdu(fpdu)) {
        Ok(Segment::Untagged(header, payload)) if header.ulp_control.opcode().is_send() && payload.len() == 16 => {
            Ok(())
        }
        _ => Err(unexpected(fpdu, "its go-ahead")),
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
