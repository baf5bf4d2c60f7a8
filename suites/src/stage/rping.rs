//! The tester as rping's client: where its data is, the data for the target's Read, where the data shall go, the target's Write.
//!
//! A script that wants to see or spoil a step takes it itself; this is what is right.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_peer::verbs::RemoteAddress;
use weft_peer::workload::ping::{Advertisement, text};

use super::exchange::{Operation, Started, TaggedBuffer};
use super::fpdu::ulpdu;
use super::{Expectation, Stage, Stop, describe};
use crate::correct;

/// What the tester calls its buffers.
const SOURCE: RemoteAddress = RemoteAddress { stag: 0x7765_6601, tagged_offset: 0x1000 };
const SINK: RemoteAddress = RemoteAddress { stag: 0x7765_6602, tagged_offset: 0x2000 };
/// Octets of a segment's payload: they fit what any Ethernet carries.
const SEGMENT: usize = 1024;

impl Stage {
    /// The target reads `size` octets and gives its go-ahead.
    pub(super) async fn first_half(
        &mut self,
        number: u32,
        started: &Started,
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
            return Ok(Err(format!("it sent {} where its Read Request was due", describe::stream(&fpdu))));
        };
        let wanted = (SOURCE.stag, SOURCE.tagged_offset, size);
        if (read.src_stag, read.src_to, read.rdmardsz) != wanted {
            return Ok(Err("its Read Request asks for other octets than those it was told".into()));
        }
        let data = text(0, size);
        let segments = correct::read_response(read.sink_stag, read.sink_to, &data, SEGMENT);
        for segment in segments {
            self.put_ulpdu(number, "Read Response", &segment, started, expectation).await?;
        }
        let go_ahead = self.answer(number, started, "its go-ahead behind the Read", expectation).await?;
        if let Err(why) = go_ahead.and_then(|fpdu| is_go_ahead(&fpdu)) {
            return Ok(Err(why));
        }
        let length = self.target.rping_size;
        let buffer = TaggedBuffer { stag: read.sink_stag, tagged_offset: read.sink_to, length };
        Ok(Ok(Operation { msn: msn + 1, buffer: Some(buffer), ird: started.ird }))
    }

    /// The target writes the data and gives its go-ahead.
    pub(super) async fn second_half(
        &mut self,
        number: u32,
        started: &Started,
        msn: u32,
        size: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        let told = correct::send(msn, &Advertisement { address: SINK, size }.emit());
        self.put_ulpdu(number, "Send", &told, started, expectation).await?;
        let mut written = Vec::new();
        loop {
            let fpdu = match self.answer(number, started, "its Write", expectation).await? {
                Ok(fpdu) => fpdu,
                Err(why) => return Ok(Err(why)),
            };
            let Some(last) = take_write(&fpdu, &mut written) else {
                return Ok(Err(format!("it sent {} where its Write was due", describe::stream(&fpdu))));
            };
            if last {
                break;
            }
        }
        if written != text(0, size) {
            return Ok(Err("what it wrote is not what it read".into()));
        }
        let go_ahead = self.answer(number, started, "its go-ahead behind the Write", expectation).await?;
        Ok(go_ahead.and_then(|fpdu| is_go_ahead(&fpdu)))
    }
}

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
        _ => Err(format!("it sent {} where its go-ahead was due", describe::stream(fpdu))),
    }
}

/// Takes a segment of a Write to the sink, the one that goes on behind what was written; says whether it is the last.
fn take_write(fpdu: &[u8], written: &mut Vec<u8>) -> Option<bool> {
    let Ok(Segment::Tagged(header, payload)) = Segment::parse(ulpdu(fpdu)) else { return None };
    let next = SINK.tagged_offset + written.len() as u64;
    let goes_on = header.stag.get() == SINK.stag && (header.tagged_offset.get() == next || payload.is_empty());
    if !goes_on || header.ulp_control.opcode() != Opcode::WRITE {
        return None;
    }
    written.extend_from_slice(payload);
    Some(header.control.last())
}
