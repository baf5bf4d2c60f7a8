//! Deviations in start-up frames of RFC 5044: frames that are sent, the processing of received
//! frames, timeouts, and versions.

use core::time::Duration;

use weft_core::wire::mpa::startup::{FLAG_C, FLAG_M, FLAG_R, FLAG_S, HEADER_LEN, KEY_LEN, REPLY_KEY, REQUEST_KEY};

use crate::mpa::{Rnic, Role};

/// A timeout that never expires in practice: 100 years.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Makes a received frame invalid. The endpoint then rejects the frame at once.
fn invalidate(octets: &mut [u8]) {
    if let Some(octet) = octets.first_mut() {
        *octet ^= 0x80;
    }
}

/// Returns the header of the frame. Returns `None` until all bytes of the header have arrived.
fn header(octets: &mut [u8]) -> Option<&mut [u8; HEADER_LEN]> {
    octets.first_chunk_mut()
}

/// Makes a received frame invalid if `bad` returns true for its header.
fn refuse(octets: &mut [u8], bad: impl FnOnce(&[u8; HEADER_LEN]) -> bool) {
    if header(octets).is_some_and(|header| bad(header)) {
        invalidate(octets);
    }
}

fn set_key(octets: &mut [u8], key: [u8; KEY_LEN]) {
    octets.iter_mut().zip(key).for_each(|(octet, right)| *octet = right);
}

deviations! {
    "mpa.accepts-wrong-key" [Arrived(|receiver, octets| if receiver == Role::Responder { set_key(octets, REQUEST_KEY) })]
        ["MPA-7.1.1-2", "MPA-7.1.2-4", "MPA-7.1.2-18", "MPA-8-4"]
        "sends a Reply to an MPA Request whose key is wrong";
    "mpa.accepts-any-revision" [Arrived(|_, octets| {
        if let Some(header) = header(octets) && (header[17] == 0 || header[17] > 2) {
            header[17] = 1;
        }
    })] ["MPA-7.1.1-22", "MPA-7.1.1-21", "MPA-7.1.2-4", "MPA-7.1.2-14", "MPA-C.2-1", "MPA-C.2.2-1"]
        "treats a start-up frame of revision 0, or of a revision above 2, as a frame of revision 1";
    "mpa.accepts-long-private-data" [Conduct(|conduct| conduct.takes_surplus = true), Arrived(|_, octets| {
        if let Some(header) = header(octets) && u16::from_be_bytes([header[18], header[19]]) > 512 {
            [header[18], header[19]] = 512u16.to_be_bytes();
        }
    })] ["MPA-7.1.1-26", "MPA-7.1.2-24", "MPA-7.1.2-27", "MPA-7.1.2-4", "MPA-7.1.2-14"]
        "treats a PD_Length above 512 in a start-up frame as 512";
    "mpa.accepts-wrong-reply-key" [Arrived(|receiver, octets| {
        if receiver == Role::Initiator {
            set_key(octets, REPLY_KEY);
        }
    })] ["MPA-7.1.1-4", "MPA-7.1.2-14", "MPA-7.1.2-18", "MPA-7.1.2-22", "MPA-7.1-8"]
        "accepts an MPA Reply with any key, even with the key of a Request";
    "mpa.asks-no-crc" [Mpa(|mpa| mpa.crc = false)] ["MPA-4.4-5", "MPA-4.4-4", "MPA-1.2-3"]
        "sends C=0 although CRCs are switched on";
    "mpa.frame-pd-length-short" [Frame(|octets| if let Some(header) = header(octets) {
        let length = u16::from_be_bytes([header[18], header[19]]).saturating_sub(1);
        [header[18], header[19]] = length.to_be_bytes();
    })] ["MPA-7.1.1-24", "MPA-7.1.1-29"] "sends a PD_Length that is one less than the length of the private data";
    "mpa.frame-private-data-600" [Frame(|octets| {
        if let Some(header) = header(octets) {
            [header[18], header[19]] = 600u16.to_be_bytes();
        }
        octets.resize(HEADER_LEN + 600, 0x77);
    })] ["MPA-7.1.1-28"] "sends a start-up frame with 600 bytes of private data";
    "mpa.frame-reserved-bits" [Frame(|octets| if let Some(header) = header(octets) { header[16] |= 0x0f })]
        ["MPA-7.1.1-18", "P2P-6-4"] "sets the four reserved bits after S in the start-up frame";
    "mpa.frame-with-crc" [Frame(|octets| {
        let crc = weft_core::crc::to_octets(weft_core::crc::crc32c(octets));
        octets.extend(crc);
    })] ["MPA-7.1-5", "MPA-7.1.1-25", "MPA-7.1.1-24", "MPA-7.1-1", "MPA-7.1-2"] "sends a CRC after the start-up frame";
    "mpa.never-times-out-fpdu" [Timeouts(|_, first_fpdu| *first_fpdu = NEVER)]
        ["P2P-mail.6-1"] "has no time-out as Responder while it waits for the first FPDU";
    "mpa.never-times-out-startup" [Timeouts(|startup, _| *startup = NEVER)]
        ["MPA-7.1.2-28", "MPA-7.1.2-23"] "has no time-out while it waits for the peer's start-up frame";
    "mpa.rdmac-reply-without-markers" [
        Mpa(|mpa| mpa.rnic = Rnic::Rdmac),
        Reply(|_, reply| reply.markers = false)
    ] ["MPA-C.2.5-1", "MPA-C.1-1"] "uses the protocols of the RDMA Consortium, but sends M=0 in its Reply";
    "mpa.rdmac-request-without-markers" [
        Mpa(|mpa| mpa.rnic = Rnic::Rdmac),
        Request(|request| request.markers = false)
    ] ["MPA-C.2.4-1", "MPA-C.1-1"] "uses the protocols of the RDMA Consortium, but sends M=0 in its Request";
    "mpa.rdmac-version-1" [
        Mpa(|mpa| mpa.rnic = Rnic::PermissiveIetf),
        Negotiated(|settled| if settled.peer_revision == 0 { settled.version = 1; })
    ] ["MPA-C.1-5", "MPA-C.1-3", "MPA-C.2.3-1", "MPA-C.2.4-2", "MPA-C.2.5-2", "MPA-C.1-7"]
        "accepts a peer of MPA revision 0, but uses version 1 of DDP and RDMAP";
    "mpa.rdmac-without-crc" [
        Mpa(|mpa| mpa.rnic = Rnic::PermissiveIetf),
        Framing(|sent, _| sent.crc = false)
    ] ["MPA-C.1-8", "MPA-C.2.5-2"] "accepts a peer of MPA revision 0, but sends no CRCs";
    "mpa.refuses-good-reply" [Arrived(|receiver, octets| if receiver == Role::Initiator { invalidate(octets) })]
        ["MPA-7.1.2-16"] "closes the connection after a valid Reply";
    "mpa.refuses-long-private-data" [Arrived(|_, octets| refuse(octets, |header| u16::from_be_bytes([header[18], header[19]]) > 256))]
        ["MPA-7.1.2-25", "P2P-6-10"] "rejects a start-up frame with more than 256 bytes of private data";
    "mpa.refuses-reserved-bits" [Arrived(|_, octets| refuse(octets, |header| header[16] & 0x0f != 0))]
        ["MPA-7.1.1-19", "P2P-6-5"] "rejects a start-up frame with a reserved bit set";
    "mpa.refuses-revision-1" [Arrived(|receiver, octets| refuse(octets, |header| receiver == Role::Responder && header[17] == 1))]
        ["P2P-6-8", "P2P-10-10", "P2P-1.1-1"] "rejects a Request of revision 1";
    "mpa.refuses-markers" [Arrived(|receiver, octets| {
        refuse(octets, |header| receiver == Role::Responder && header[16] & FLAG_M != 0);
    })] ["MPA-4.3-3", "MPA-7.1.1-6"] "rejects a Request with M=1";
    "mpa.refuses-pieces" [Arrived(|receiver, octets| {
        if receiver == Role::Responder && octets.len() < HEADER_LEN {
            invalidate(octets);
        }
    })] ["MPA-7.1.2-8"] "rejects a Request if TCP delivers the header of the Request in more than one piece";
    "mpa.refuses-request-r" [Arrived(|receiver, octets| {
        refuse(octets, |header| receiver == Role::Responder && header[16] & FLAG_R != 0);
    })] ["MPA-7.1.1-16"] "rejects a Request with R=1";
    "mpa.rejects-silently" [Frame(|octets| if octets.starts_with(&REPLY_KEY) && octets[16] & FLAG_R != 0 {
        octets.clear();
    })] ["MPA-7.1.2-5", "MPA-7.1.2-20"] "sends no Reply to a Request that the ULP rejects";
    "mpa.reject-bit-moved" [Frame(|octets| if octets.starts_with(&REPLY_KEY) && octets[16] & FLAG_R != 0 {
        octets[16] ^= FLAG_R | FLAG_R >> 1;
    })] ["MPA-7.1.1-17", "MPA-7.1.1-18"] "sets the bit after R, not R itself, in a rejecting Reply";
    "mpa.reply-key" [Frame(|octets| if octets.starts_with(&REPLY_KEY) { set_key(octets, REQUEST_KEY) })]
        ["MPA-7.1.1-3"] "sends the Reply with the key of a Request";
    "mpa.reply-markers-not-requested" [Mpa(|mpa| mpa.markers = false), Negotiated(|settled| {
        settled.markers_received = true;
    })] ["MPA-7.1.1-5", "MPA-4.3-2"] "sends M=0, but expects markers in the received stream";
    "mpa.reply-rejects" [Reply(|_, reply| reply.reject = true)] ["MPA-7.1.2-8", "MPA-7.1.1-17"]
        "sends R=1 in the Reply to a Request that it accepts, and enters Full Operation";
    "mpa.reply-ends-with-nul" [Frame(|octets| if octets.starts_with(&REPLY_KEY) && octets.len() > HEADER_LEN { octets.push(0) })]
        ["MPA-7.1-1", "MPA-7.1.1-24", "MPA-7.1.1-26", "MPA-7.1.1-29", "MPA-7.1.2-26"] "sends a zero byte after the private data of the Reply, but does not count this byte in PD_Length";
    "mpa.reply-revision" [Reply(|_, reply| reply.revision = 3)] ["MPA-7.1.1-20", "P2P-10-3"]
        "sends a Reply with revision 3";
    "mpa.reply-to-rdmac-without-markers" [
        Mpa(|mpa| mpa.rnic = Rnic::PermissiveIetf),
        Reply(|request, reply| if request.revision == 0 { reply.markers = false; })
    ] ["MPA-C.2.3-2", "MPA-C.2.4-2"] "accepts a Request of revision 0, but sends M=0 in its Reply";
    "mpa.request-key" [Frame(|octets| if octets.starts_with(&REQUEST_KEY) { octets[9] = b'Q'; })]
        ["MPA-7.1.1-1", "MPA-7.1.2-1"] "sends the Request's key with a capital Q";
    "mpa.request-length-of-frame" [Frame(|octets| if octets.starts_with(&REQUEST_KEY) && octets.len() > HEADER_LEN {
        let length = u16::try_from(octets.len()).unwrap_or(u16::MAX);
        octets[18..20].copy_from_slice(&length.to_be_bytes());
    })] ["MPA-7.1.1-24", "MPA-7.1.1-23", "MPA-7.1.1-29"] "counts the length of the header in PD_Length of the Request";
    "mpa.request-rejects" [Request(|request| request.reject = true)] ["MPA-7.1.1-15"] "sends a Request with R=1";
    "mpa.request-revision" [Request(|request| request.revision = 3)] ["MPA-7.1.1-20"] "sends a Request with revision 3";
    "mpa.version-0" [Negotiated(|settled| settled.version = 0)] ["MPA-3-14", "MPA-3-15", "MPA-C.1-5", "MPA-C.1-2"]
        "uses DDP and RDMAP version 0 after start-up frames of revision 1 or 2";
    "mpa.wrong-c-in-reply" [Frame(|octets| if octets.starts_with(&REPLY_KEY) { octets[16] &= !FLAG_C; })]
        ["MPA-1.2-3", "MPA-4.4-4"] "sends C=0 in the Reply although it requires CRCs";
    "p2p.enhanced-reply-to-unenhanced" [Frame(|octets| {
        if octets.starts_with(&REPLY_KEY) && let Some(header) = header(octets) && header[16] & FLAG_S == 0 {
            header[16] |= FLAG_S;
            let length = u16::from_be_bytes([header[18], header[19]]).saturating_add(4);
            [header[18], header[19]] = length.to_be_bytes();
            octets.splice(HEADER_LEN..HEADER_LEN, [0, 1, 0, 1]);
        }
    })] ["P2P-10-3", "P2P-10-11", "P2P-6-6", "P2P-6-3"] "sends S=1 in the Reply to a Request with S=0";
}
