//! Deviations in the enhanced set-up of RFC 6581: the two words with IRD, ORD and flags in the
//! frames, ready-to-receive messages, and Terminates.

use weft_core::wire::ddp::RawHeader;
use weft_core::wire::mpa::Enhanced;
use weft_core::wire::mpa::startup::{FLAG_S, HEADER_LEN, NOT_NEGOTIATED, REPLY_KEY};
use weft_core::wire::rdmap::{ErrorLayer, TerminateError};

use super::context::segment::{MSN, SENDS, change_word, has_payload, opcode, word};
use crate::mpa::{EnhancedUse, Role, Rtr};

/// If a start-up frame is enhanced, changes its IRD, ORD and flags.
fn change_enhanced(frame: &mut weft_core::wire::mpa::Startup<'_>, change: impl FnOnce(&mut Enhanced)) {
    if let Some(enhanced) = &mut frame.enhanced {
        change(enhanced);
    }
}

fn set_kinds(enhanced: &mut Enhanced, on: bool) {
    (enhanced.rtr_send, enhanced.rtr_write, enhanced.rtr_read) = (on, on, on);
}

deviations! {
    "p2p.a-and-b-exchanged" [Frame(|octets| if octets[16] & FLAG_S != 0 && octets.len() > HEADER_LEN {
        octets[20] = octets[20] & 0x3f | octets[20] >> 1 & 0x40 | octets[20] << 1 & 0x80;
    })] ["P2P-9-1", "P2P-9.2-3"] "swaps the flags A and B";
    "p2p.accepts-short-words" [Arrived(|_, octets| {
        if octets.len() >= HEADER_LEN && octets[16] & FLAG_S != 0 && octets[17] == 2 && octets[18..20] < [0, 4][..] {
            octets[16] &= !FLAG_S;
        }
    })] ["P2P-6-12"] "treats a Request with S=1 and a PD_Length below 4 as a Request with S=0";
    "p2p.checks-rtr-stag" [Refuses(|fpdu| {
        fpdu.layout().ulpdu_length == 14 && fpdu.ulpdu().flatten().skip(2).take(4).any(|octet| *octet != 0)
    })] ["P2P-9.2-14"] "rejects an empty Write if its STag is not zero";
    "p2p.closes-enhanced" [Mpa(|mpa| mpa.enhanced = EnhancedUse::Off)]
        ["P2P-10-2", "P2P-10-9", "P2P-5-2"] "closes the connection after an enhanced Request although it supports the enhanced set-up";
    "p2p.counts-without-words" [Frame(|octets| if octets.len() > HEADER_LEN && octets[16] & FLAG_S != 0 {
        octets[19] = octets[19].wrapping_sub(4);
    })] ["P2P-6-10", "P2P-6-2"] "does not count the four bytes of IRD and ORD in PD_Length of an enhanced frame";
    "p2p.enhanced-without-need" [Mpa(|mpa| {
        if mpa.enhanced == EnhancedUse::Answer {
            mpa.enhanced = EnhancedUse::Request;
        }
    })] ["P2P-10-1"] "sends an enhanced Request although its settings do not require the enhanced set-up";
    "p2p.forgets-opening-send" [Segment(|sent| {
        // If the first Send of the stream is empty, it is the ready-to-receive message.
        for octets in sent.out.iter_mut().filter(|octets| SENDS.contains(&opcode(octets))) {
            if word(octets, MSN) == 1 {
                sent.state.count = u32::from(!has_payload(octets));
            } else {
                let by = sent.state.count;
                change_word(octets, MSN, |msn| msn.wrapping_sub(by));
            }
        }
    })] ["P2P-9.2-13", "DDP-4.3-6", "RDMAP-5.3-16"] "sends MSN 1 in a ready-to-receive message that is a Send, and again in the next Send";
    "p2p.insufficient-ird-as-no-match" [Terminate(|terminate| if terminate.error == TerminateError::MPA_INSUFFICIENT_IRD {
        terminate.error = TerminateError::MPA_NO_MATCHING_RTR;
    })] ["P2P-8-2", "P2P-9.1-24", "RDMAP-4.8-36"] "sends the error code 7 instead of 6 in the Terminate if it cannot raise its IRD";
    "p2p.looks-at-kinds-of-client-server" [Reply(|request, reply| {
        if let Some(requested) = request.enhanced {
            change_enhanced(reply, |enhanced| {
                (enhanced.rtr_send, enhanced.rtr_write, enhanced.rtr_read) =
                    (requested.rtr_send, requested.rtr_write, requested.rtr_read);
            });
        }
    })] ["P2P-9.2-25", "P2P-9.2-3"] "copies the flags B, C and D of a Request with A=0 into the Reply";
    "p2p.opens-late" [Opening(|ulpdus| ulpdus.insert(0, Rtr::Send.ulpdu(1)))]
        ["P2P-5-4", "P2P-3-3", "P2P-9.3-1"] "sends a Send before the ready-to-receive message";
    "p2p.opens-twice" [Opening(|ulpdus| ulpdus.push(Rtr::Write.ulpdu(1)))]
        ["P2P-1.1-3"] "sends an empty Write as a second ready-to-receive message";
    "p2p.opens-unrequested" [Opening(|ulpdus| if ulpdus.is_empty() { ulpdus.push(Rtr::Write.ulpdu(1)) })]
        ["P2P-mail.2-3"] "sends a ready-to-receive message that was not negotiated";
    "p2p.opens-with-another-kind" [Opening(|ulpdus| for ulpdu in ulpdus {
        let write = Rtr::Write.ulpdu(1);
        *ulpdu = if *ulpdu == write { Rtr::Read.ulpdu(1) } else { write };
    })] ["P2P-9.2-9", "P2P-9-4", "P2P-9-5", "P2P-9-6", "P2P-mail.4-1"]
        "sends a ready-to-receive message of another kind than the negotiated kind";
    "p2p.opens-with-data" [Opening(|ulpdus| for ulpdu in ulpdus {
        if *ulpdu == Rtr::Read.ulpdu(1) {
            ulpdu[33] = 1;
        } else {
            ulpdu.push(0);
        }
    })] ["P2P-1.1-2", "P2P-9.2-10", "P2P-9.2-11", "P2P-9.2-13"] "sends a ready-to-receive message with one byte of payload, or a Read Request for one byte";
    "p2p.opens-with-empty-fpdu" [Opening(|ulpdus| ulpdus.iter_mut().for_each(Vec::clear))]
        ["P2P-9.2-9", "P2P-9.2-10", "P2P-9.2-11", "P2P-9.2-13"] "sends an FPDU without a ULPDU instead of the ready-to-receive message";
    "p2p.opens-with-nothing" [Opening(Vec::clear)] ["P2P-9.2-9", "P2P-3-3", "P2P-mail.0-1", "P2P-9.3-1"]
        "sends no ready-to-receive message";
    "p2p.rejects-unenhanced" [Frame(|octets| if octets.starts_with(&REPLY_KEY) && octets[16] & (FLAG_S | 0x20) == FLAG_S | 0x20 {
        octets[16] &= !FLAG_S;
        octets[19] = octets[19].wrapping_sub(4);
        octets.drain(HEADER_LEN..HEADER_LEN + 4);
    })] ["P2P-10-2"] "rejects an enhanced Request with a Reply that is not enhanced";
    "p2p.reply-adds-ord" [Reply(|_, reply| change_enhanced(reply, |enhanced| enhanced.ord =
        0x3ffe.min(enhanced.ord + 1)))]
        ["P2P-9.1-20", "P2P-9.1-6", "P2P-9.1-5"] "sends a Reply whose ORD is one higher than allowed";
    "p2p.reply-claims-peer-to-peer" [Reply(|_, reply| change_enhanced(reply, |enhanced| enhanced.peer_to_peer = true))]
        ["P2P-9.2-7"] "sends A=1 in the Reply to a Request with A=0";
    "p2p.reply-copies-depths" [Reply(|request, reply| if let Some(requested) = request.enhanced {
        change_enhanced(reply, |enhanced| (enhanced.ird, enhanced.ord) = (requested.ird, requested.ord));
    })] ["P2P-9.1-5", "P2P-9.1-20", "P2P-9.1-6", "P2P-9.1-7", "P2P-9.1-19"] "copies IRD and ORD of the Request into the Reply";
    "p2p.reply-denies-peer-to-peer" [Reply(|_, reply| change_enhanced(reply, |enhanced| {
        enhanced.peer_to_peer = false;
        set_kinds(enhanced, false);
    }))] ["P2P-9.2-4", "P2P-9-3"] "sends A=0 in the Reply to a Request with A=1";
    "p2p.reply-ignores-open-ird" [Reply(|request, reply| {
        if request.enhanced.is_some_and(|requested| requested.ird == NOT_NEGOTIATED) {
            change_enhanced(reply, |enhanced| enhanced.ord = 32);
        }
    })] ["P2P-9.1-14", "P2P-9.1-12", "P2P-9.1-17"] "answers a Request that has IRD 0x3FFF, but sends an ORD other than 0x3FFF in the Reply";
    "p2p.reply-ignores-open-ord" [Reply(|request, reply| {
        if request.enhanced.is_some_and(|requested| requested.ord == NOT_NEGOTIATED) {
            change_enhanced(reply, |enhanced| enhanced.ird = 32);
        }
    })] ["P2P-9.1-13", "P2P-9.1-12", "P2P-9.1-17"] "answers a Request that has ORD 0x3FFF, but sends an IRD other than 0x3FFF in the Reply";
    "p2p.reply-little-endian" [Frame(|octets| if octets[16] & FLAG_S != 0 && octets.len() >= HEADER_LEN + 4 {
        octets[20..22].reverse();
        octets[22..24].reverse();
    })] ["P2P-9-7", "P2P-9-1", "P2P-9-2"] "sends IRD and ORD of enhanced frames in little-endian byte order";
    "p2p.reply-lowers-ird" [Reply(|_, reply| change_enhanced(reply, |enhanced| enhanced.ird =
        enhanced.ird.saturating_sub(33)))]
        ["P2P-9.1-7", "P2P-9.1-19"] "sends a Reply whose IRD is 33 less than it should be";
    "p2p.reply-names-no-kind" [Reply(|_, reply| change_enhanced(reply, |enhanced| set_kinds(enhanced, false)))]
        ["P2P-9.2-6", "P2P-9.2-20", "P2P-9.2-22", "P2P-9.2-5", "P2P-mail.2-1"] "sends B=0, C=0 and D=0 in a Reply with A=1";
    "p2p.reply-unenhanced" [Reply(|_, reply| reply.enhanced = None)]
        ["P2P-10-2", "P2P-10-9", "P2P-5-2", "P2P-9.1-3"] "answers an enhanced Request with a Reply that has S=0, no IRD and no ORD";
    "p2p.request-claims-peer-to-peer" [Request(|request| change_enhanced(request, |enhanced| enhanced.peer_to_peer =
        true))]
        ["P2P-9.2-24", "P2P-9-3"]
        "sends A=1 in the Request, but uses the client-server model and sends no ready-to-receive message";
    "p2p.request-kinds-of-client-server" [Request(|request| change_enhanced(request, |enhanced| {
        enhanced.peer_to_peer = false;
        set_kinds(enhanced, true);
    }))] ["P2P-9.2-3", "P2P-9.2-1"] "sends B=1, C=1 and D=1 in a Request with A=0";
    "p2p.request-without-kinds" [Request(|request| change_enhanced(request, |enhanced| set_kinds(enhanced, false)))]
        ["P2P-9.2-2"] "sends B=0, C=0 and D=0 in a Request with A=1";
    "p2p.revision-1-with-words" [Frame(|octets| if octets[16] & FLAG_S != 0 { octets[17] = 1; })]
        ["P2P-6-6", "P2P-6-2"] "sends an enhanced frame with revision 1";
    "p2p.revision-among-flags" [Frame(|octets| if octets[17] == 2 { octets[16] |= 2 })]
        ["P2P-6-4"] "repeats the revision of an enhanced frame in the reserved bits after the flags";
    "p2p.s-bit-moved" [Frame(|octets| if octets[16] & FLAG_S != 0 { octets[16] ^= FLAG_S | 0x08; })]
        ["P2P-6-1", "P2P-6-4"] "sets the bit after S, not S itself, in enhanced frames";
    "p2p.takes-enhanced-as-unenhanced" [
        Mpa(|mpa| mpa.enhanced = EnhancedUse::Off),
        Arrived(|receiver, octets| if receiver == Role::Responder && octets.len() >= HEADER_LEN && octets[17] == 2 {
            octets[16] &= !FLAG_S;
        })
    ] ["P2P-10-4", "P2P-10-2"] "treats an enhanced Request as unenhanced, with IRD and ORD as private data";
    "p2p.takes-open-ird-for-none" [ReplyParameters(|enhanced| if enhanced.ird == NOT_NEGOTIATED { enhanced.ird = 0 })]
        ["P2P-9.1-15"] "treats IRD 0x3FFF in the Reply as IRD 0, and sends no Read Requests";
    "p2p.takes-open-ord-for-a-number" [ReplyParameters(|enhanced| if enhanced.ord == NOT_NEGOTIATED {
        enhanced.ord = NOT_NEGOTIATED - 1;
    })] ["P2P-9.1-16"] "treats ORD 0x3FFF in the Reply as a number, and rejects the Reply because this number is too high";
    "p2p.terminate-code" [Terminate(|terminate| {
        if matches!(terminate.error, TerminateError::MPA_INSUFFICIENT_IRD | TerminateError::MPA_NO_MATCHING_RTR) {
            terminate.error = TerminateError::MPA_LOCAL_CATASTROPHIC;
        } else if terminate.error == TerminateError::MPA_LOCAL_CATASTROPHIC {
            terminate.error = TerminateError::MPA_NO_MATCHING_RTR;
        }
    })] ["P2P-9.1-24", "P2P-9.2-23", "P2P-9.3-4", "P2P-8-1", "P2P-8-2", "P2P-8-3", "RDMAP-4.8-36"]
        "uses the error codes 5, 6 and 7 for the wrong errors in Terminates";
    "p2p.terminate-with-header" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::LLP {
        terminate.segment_length = Some(14);
        terminate.ddp_header = RawHeader::from_prefix(&[0x80; 14]).map(|(header, _)| header);
    })] ["P2P-8-4", "RDMAP-4.8-14"] "sends a DDP header in the Terminate for an MPA error";
    "p2p.terminate-with-length" [Terminate(|terminate| terminate.segment_length = Some(0))]
        ["P2P-8-4"] "sends a DDP Segment Length in the Terminate for an MPA error";
    "mpa.terminate-code" [Terminate(|terminate| {
        if matches!(terminate.error, TerminateError::MPA_CRC | TerminateError::MPA_MARKER) {
            terminate.error = TerminateError::MPA_CONNECTION_LOST;
        }
    })] ["MPA-8-5", "MPA-8-6", "RDMAP-4.8-33", "RDMAP-4.8-34"] "sends the error code 1 in the Terminate for a wrong CRC or a wrong marker";
}
