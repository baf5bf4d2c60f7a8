//! Exchanges that need several messages. The tester collects bytes of the target, answers the
//! target's Reads of advertised bytes, and closes gracefully.

use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::wire::sdp::Mid;

use super::SdpSide;
use super::{Ending, MessageFields, SendFields};
use crate::sdp::{Draft, ReceivedMessage};
use crate::stage::{Expectation, Message, Stop};

/// STag of the tester's memory in Read Requests. Its value has no meaning.
const SINK: u32 = 0x5151;

/// A SrcAvail may advertise more bytes than it carries as payload. Returns the STag, VA and length
/// of these additional bytes.
fn beside_payload(received: &ReceivedMessage) -> ((u32, u64), u32) {
    let field = |name| received.field(name).unwrap_or_default();
    let carried = received.payload.len() as u64;
    let stag = u32::try_from(field("stag")).unwrap_or_default();
    let rest = u32::try_from(field("length").saturating_sub(carried)).unwrap_or_default();
    ((stag, field("va").wrapping_add(carried)), rest)
}

impl SdpSide<'_> {
    /// Receives `due` bytes: the payload of messages, and bytes that SrcAvails advertise. The
    /// tester gets the advertised bytes by RDMA Reads.
    pub(crate) async fn collect(
        &mut self,
        expectation: &Expectation,
        due: usize,
        past: &[Mid],
    ) -> Result<Vec<u8>, Stop> {
        let mut mids = vec![Mid::DATA, Mid::SRC_AVAIL];
        // A SinkAvail may have some of the bytes as payload.
        mids.extend(past.iter().filter(|mid| **mid == Mid::SINK_AVAIL));
        let wanted = MessageFields { mids, past: past.to_vec(), ..MessageFields::default() };
        let mut got = Vec::new();
        while got.len() < due {
            let received = self.expect(expectation, &wanted).await?;
            got.extend_from_slice(&received.payload);
            if received.mid == Mid::SRC_AVAIL {
                let (place, rest) = beside_payload(&received);
                got.extend(self.fetch(expectation, place, rest).await?);
            }
        }
        Ok(got)
    }

    /// Reads `octets` advertised bytes at `va`, and sends the RdmaRdCompl.
    pub(crate) async fn fetch(
        &mut self,
        expectation: &Expectation,
        (stag, va): (u32, u64),
        octets: u32,
    ) -> Result<Vec<u8>, Stop> {
        let read = ReadRequest { sink_stag: SINK, sink_to: 0, rdmardsz: octets, src_stag: stag, src_to: va };
        self.request_read(read).await?;
        let fetched = self.expect_response(expectation).await?;
        let mut completed = Draft::new(Mid::RDMA_RD_COMPL);
        completed.extension[0].1 = octets.into();
        let send_fields = SendFields { invalidate: Some(stag), ..SendFields::default() };
        self.send(&Message::of_draft(completed), send_fields).await?;
        Ok(fetched)
    }

    /// Answers the target's Reads of bytes that were advertised at `va`. Ends when the target has
    /// read the bytes from the offset `from` to the end.
    pub(crate) async fn serve(
        &mut self,
        expectation: &Expectation,
        va: u64,
        octets: &[u8],
        from: usize,
    ) -> Result<(), Stop> {
        let mut at = from;
        while at < octets.len() {
            let read = self.expect_read(expectation).await?;
            let first = usize::try_from(read.src_to.wrapping_sub(va)).unwrap_or(usize::MAX);
            let end = first.saturating_add(read.rdmardsz as usize);
            let Some(requested) = octets.get(first..end).filter(|requested| !requested.is_empty()) else {
                let actual = format!("a Read of bytes {first} to {end} of {} advertised bytes", octets.len());
                return Err(self.recorder().unmet(expectation, "a Read of advertised bytes", &actual));
            };
            let sink = (read.sink_stag, read.sink_to);
            self.send_tagged(Opcode::READ_RESPONSE, sink, requested).await?;
            at = end;
        }
        Ok(())
    }

    /// Sends DisConn, then expects the target's DisConn and the end of TCP. Messages in `past` may
    /// arrive before the target's DisConn.
    pub(crate) async fn close(&mut self, expectation: &Expectation, past: &[Mid]) -> Result<(), Stop> {
        self.send(&Message::of_mid(Mid::DIS_CONN), SendFields::default()).await?;
        let wanted = MessageFields { mids: vec![Mid::DIS_CONN], past: past.to_vec(), ..MessageFields::default() };
        self.expect(expectation, &wanted).await?;
        self.expect_end(expectation, &Ending { past: Vec::new(), graceful: true }).await?;
        Ok(())
    }
}
