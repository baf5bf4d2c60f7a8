//! Full Operation: MPA framing, DDP and RDMAP of one connection, composed.

use weft_core::wire::mpa::Framing;

use crate::hostile::{self, Conduct, Deviations};
use crate::mpa::{ArrivedRtr, Deframer, FpduError, Negotiated, Role, Rtr, RtrKinds, is_read_response, read_response};
use crate::rdmap::{Delivery, Inbound, Outbound, StreamError};

/// Both directions of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    deframer: Deframer,
    pub(super) inbound: Inbound,
    pub(super) outbound: Outbound,
    /// A valid FPDU arrived, or this is the Initiator: FPDUs may be sent (MPA-7.1.2-17).
    pub(super) may_send: bool,
    /// Responder: no valid FPDU has arrived.
    pub(super) awaits_first: bool,
    version: u8,
    /// Responder: what the Initiator may begin with.
    rtr: RtrKinds,
    /// Initiator: the Read Response to the ready-to-receive message has not come.
    awaits_read_response: bool,
    conduct: Conduct,
}

/// Why a stream can go on no longer.
pub(super) enum StreamEnd {
    /// The peer broke it.
    Fault(StreamError),
    /// The first FPDU is invalid, and FPDUs may not be sent.
    FirstFpdu(FpduError),
}

impl Stream {
    /// `received` is how the peer's FPDUs look.
    pub(super) fn new(
        negotiated: &Negotiated,
        mut outbound: Outbound,
        received: Framing,
        deviations: &Deviations,
    ) -> Self {
        let (version, initiator) = (negotiated.version, negotiated.role == Role::Initiator);
        let conduct = hostile::hook::conduct(deviations);
        if initiator {
            let kind = Rtr::ALL.into_iter().find(|kind| negotiated.rtr.contains(*kind));
            let mut opening: Vec<Vec<u8>> = kind.map(|kind| kind.ulpdu(version)).into_iter().collect();
            hostile::hook::opening(deviations, &mut opening);
            for ulpdu in opening {
                // A Send takes a message sequence number, whether or not the ULP gets it.
                if ArrivedRtr::of(&ulpdu, version) == Some(ArrivedRtr::Send) {
                    outbound.skip_send();
                }
                outbound.send_ahead(ulpdu);
            }
        } else if conduct.sends_early {
            // Not every ULP has something to send by then.
            outbound.send_ahead(Rtr::Write.ulpdu(version));
        }
        Stream {
            deframer: Deframer::deviating(received, deviations.clone()),
            inbound: Inbound::deviating(version, deviations.clone()),
            outbound,
            may_send: initiator || conduct.sends_early,
            awaits_first: !initiator,
            conduct,
            version,
            rtr: negotiated.rtr,
            awaits_read_response: initiator && negotiated.rtr.read,
        }
    }

    /// Reads until something is delivered, an error ends it, or `octets` is used up (`None`).
    pub(super) fn read(&mut self, octets: &mut &[u8]) -> Option<Result<Delivery, StreamEnd>> {
        while let Some(ulpdu) = self.deframer.next(octets) {
            let first = self.awaits_first;
            if self.conduct.drops_after_first {
                *octets = &[];
            }
            let ulpdu = match ulpdu {
                Ok(ulpdu) => ulpdu,
                Err(_) if self.conduct.goes_on_after_error => continue,
                Err(error) if first && !self.conduct.terminates_first_fpdu => {
                    return Some(Err(StreamEnd::FirstFpdu(error)));
                }
                Err(error) => return Some(Err(StreamEnd::Fault(StreamError::Fpdu(error)))),
            };
            (self.may_send, self.awaits_first) = (true, false);
            if first && self.conduct.drops_first_fpdu {
                continue;
            }
            if first {
                match ArrivedRtr::of(ulpdu, self.version) {
                    // Also where none was agreed: some Initiators of revision 1 begin with it.
                    Some(ArrivedRtr::Read { sink_stag, sink_to }) => {
                        if !self.conduct.withholds_read_response {
                            self.outbound.send_ahead(read_response(self.version, sink_stag, sink_to));
                        }
                        continue;
                    }
                    // Its ULP knows nothing of it, so it uses none of its buffers (RFC 6581 section
                    // 4.4.2).
                    Some(ArrivedRtr::Send) if self.rtr.send => {
                        self.inbound.skip_send();
                        continue;
                    }
                    // A Write of no octets is one like any other.
                    Some(ArrivedRtr::Send | ArrivedRtr::Write) | None => {}
                }
            } else if self.awaits_read_response && is_read_response(ulpdu, self.version) {
                self.awaits_read_response = false;
                continue;
            }
            match self.inbound.handle_segment(ulpdu) {
                Ok(None) => {}
                Ok(Some(delivery)) => return Some(Ok(delivery)),
                Err(error) => return Some(Err(StreamEnd::Fault(StreamError::Segment(error)))),
            }
        }
        if self.conduct.needs_alignment && !self.deframer.is_at_boundary() {
            let cut = FpduError::Crc { position: 0, computed: 0, found: 0 };
            return Some(Err(StreamEnd::Fault(StreamError::Fpdu(cut))));
        }
        None
    }

    /// No received FPDU or message is incomplete.
    pub(super) fn is_at_boundary(&self) -> bool {
        self.deframer.is_at_boundary() && !self.inbound.is_mid_message()
    }
}
