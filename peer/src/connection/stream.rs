//! The stream of one connection after start-up: combines MPA framing, DDP and RDMAP.

use weft_core::wire::mpa::Framing;
use weft_core::wire::rdmap::ReadRequest;

use crate::hostile::{self, Conduct, Deviations};
use crate::mpa::{ArrivedRtr, Deframer, FpduError, Negotiated, Role, Rtr, RtrKinds, is_read_response, read_response};
use crate::rdmap::{Delivery, Inbound, Outbound, StreamError};

/// Both directions of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    deframer: Deframer,
    pub(super) inbound: Inbound,
    pub(super) outbound: Outbound,
    /// True if this endpoint may send FPDUs: it is the Initiator, or a valid FPDU has arrived
    /// (MPA-7.1.2-17).
    pub(super) may_send: bool,
    /// Responder: no valid FPDU has arrived yet.
    pub(super) awaits_first: bool,
    version: u8,
    /// Responder: kinds of ready-to-receive message that the Initiator may send first.
    rtr: RtrKinds,
    /// The Initiator sent a ready-to-receive message of kind Read, and the Read Response has not
    /// arrived yet.
    awaits_read_response: bool,
    conduct: Conduct,
}

/// Reason why a stream cannot continue.
pub(super) enum StreamEnd {
    /// The peer violated the protocol.
    Fault(StreamError),
    /// The first FPDU is invalid, so this endpoint must not send FPDUs.
    FirstFpdu(FpduError),
}

impl Stream {
    /// Creates a stream. `received` is the format of the peer's FPDUs.
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
                // A Send uses a message sequence number, even if the peer's ULP does not get the
                // Send.
                if ArrivedRtr::of(&ulpdu, version) == Some(ArrivedRtr::Send) {
                    outbound.skip_send();
                }
                outbound.send_ahead(ulpdu);
            }
        } else if conduct.sends_early {
            // Use a Write of 0 bytes, because the ULP possibly has nothing to send yet.
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

    /// Reads FPDUs until an FPDU delivers a message or causes an error. Returns `None` if all
    /// `octets` are used.
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
                    // This Send only reports that the peer is ready. It is not passed to the ULP,
                    // so it uses no receive buffer (RFC 6581 section 4.4.2).
                    Some(ArrivedRtr::Send) if self.rtr.send => {
                        self.inbound.receiver.skip_send();
                        continue;
                    }
                    // A Read or a Write of 0 bytes needs no special treatment.
                    Some(ArrivedRtr::Send | ArrivedRtr::Write | ArrivedRtr::Read { .. }) | None => {}
                }
            } else if self.awaits_read_response && is_read_response(ulpdu, self.version) {
                self.awaits_read_response = false;
                continue;
            }
            let delivered = self.inbound.handle_segment(ulpdu);
            if let Some(ReadRequest { sink_stag, sink_to, .. }) = self.inbound.take_empty_read()
                && !(first && self.conduct.withholds_read_response)
            {
                self.outbound.send_ahead(read_response(self.version, sink_stag, sink_to));
            }
            match delivered {
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

    /// See [`Deframer::ignore_missing_crc`].
    pub(super) fn ignore_missing_crc(&mut self) -> Option<usize> {
        self.deframer.ignore_missing_crc()
    }

    /// Returns whether all received FPDUs and messages are complete.
    pub(super) fn is_at_boundary(&self) -> bool {
        self.deframer.is_at_boundary() && !self.inbound.receiver.is_mid_message()
    }
}
