//! Defines the fields of SMB Direct (MS-SMBD section 2.2). The fields of messages are
//! little-endian.

use crate::grammar::field::{Base, Field, Group, Visitor, fields};
use crate::grammar::output::Output;
use crate::part::Part;
use crate::upper::private_data;
use crate::upper::smb_direct::{
    ByteOrder, DATA_LEN, Message, PORT, PrivateData, REQUEST_LEN, RESPONSE_LEN, Sizes, UpperMessage,
};
use crate::upper::smb2::names;

/// A message of SMB Direct.
pub static SMB_DIRECT: Group = Group { name: "smb_direct", label: "SMB Direct", section: "MS-SMBD 2.2" };

/// The private data of a start-up frame.
pub static PRIVATE_DATA: Group =
    Group { name: "weft.smb_direct", label: "SMB Direct private data", section: "MS-SMBD 2.1" };

fields! { 15:
    VERSION_MIN: "smb_direct.version.min", "MinVersion", Base::Hex(4), "MS-SMBD 2.2.1", le true;
    VERSION_MAX: "smb_direct.version.max", "MaxVersion", Base::Hex(4), "MS-SMBD 2.2.1", le true;
    VERSION_NEGOTIATED: "smb_direct.version.negotiated", "NegotiatedVersion", Base::Hex(4), "MS-SMBD 2.2.2", le true;
    CREDITS_REQUESTED: "smb_direct.credits.requested", "CreditsRequested", Base::Dec, "MS-SMBD 2.2.3", le true;
    CREDITS_GRANTED: "smb_direct.credits.granted", "CreditsGranted", Base::Dec, "MS-SMBD 2.2.3", le true;
    STATUS: "smb_direct.status", "Status", Base::Hex(8), "MS-SMBD 2.2.2", names names::status, le true;
    MAX_READ_WRITE_SIZE: "smb_direct.max_read_write_size", "MaxReadWriteSize", Base::Dec, "MS-SMBD 2.2.2", le true;
    PREFERRED_SEND_SIZE: "smb_direct.preferred_send_size", "PreferredSendSize", Base::Dec, "MS-SMBD 2.2.1", le true;
    MAX_RECEIVE_SIZE: "smb_direct.max_receive_size", "MaxReceiveSize", Base::Dec, "MS-SMBD 2.2.1", le true;
    MAX_FRAGMENTED_SIZE: "smb_direct.max_fragmented_size", "MaxFragmentedSize", Base::Dec, "MS-SMBD 2.2.1", le true;
    FLAGS: "smb_direct.flags", "Flags", Base::Hex(4), "MS-SMBD 2.2.3", le true;
    RESPONSE_REQUESTED: "smb_direct.flags.response_requested", "SMB_DIRECT_RESPONSE_REQUESTED", Base::Flag, "MS-SMBD 2.2.3", mask 0x0001, le true;
    REMAINING_LENGTH: "smb_direct.remaining_length", "RemainingDataLength", Base::Dec, "MS-SMBD 2.2.3", le true;
    DATA_OFFSET: "smb_direct.data_offset", "DataOffset", Base::Dec, "MS-SMBD 2.2.3", le true;
    DATA_LENGTH: "smb_direct.data_length", "DataLength", Base::Dec, "MS-SMBD 2.2.3", le true;
    FRAGMENT_COUNT: "smb_direct.fragment.count", "Data Transfers of the message", Base::Dec, "MS-SMBD 3.1.5.8";
    FIRST_FRAME: "smb_direct.fragment", "Frame of the first Data Transfer", Base::Dec, "MS-SMBD 3.1.5.8";
    REASSEMBLED_LENGTH: "smb_direct.reassembled.length", "Length of the message", Base::Dec, "MS-SMBD 3.1.5.8";
    PRIVATE_IRD: "weft.smb_direct.ird", "IRD", Base::Dec, "MS-SMBD 2.1";
    PRIVATE_ORD: "weft.smb_direct.ord", "ORD", Base::Dec, "MS-SMBD 2.1";
    PRIVATE_ORDER: "weft.smb_direct.order", "Byte order of IRD and ORD", Base::Text, "MS-SMBD 2.1";
}

/// Visits a message. `upper` is the upper-layer message that ends with it.
pub(super) fn visit<V: Visitor>(message: &Message, upper: Option<&UpperMessage>, output: &mut Output<'_, V>) {
    match *message {
        Message::NegotiateRequest { versions, credits, sizes } => {
            output.enter(&SMB_DIRECT, 0..REQUEST_LEN);
            output.uint(&VERSION_MIN, versions.0, 0..2);
            output.uint(&VERSION_MAX, versions.1, 2..4);
            output.uint(&CREDITS_REQUESTED, credits, 6..8);
            visit_sizes(sizes, 8, output);
        }
        Message::NegotiateResponse { versions, version, requested, credits, status, max_read_write, sizes } => {
            output.enter(&SMB_DIRECT, 0..RESPONSE_LEN);
            output.uint(&VERSION_MIN, versions.0, 0..2);
            output.uint(&VERSION_MAX, versions.1, 2..4);
            output.uint(&VERSION_NEGOTIATED, version, 4..6);
            output.uint(&CREDITS_REQUESTED, requested, 8..10);
            output.uint(&CREDITS_GRANTED, credits, 10..12);
            output.uint(&STATUS, status, 12..16);
            output.uint(&MAX_READ_WRITE_SIZE, max_read_write, 16..20);
            visit_sizes(sizes, 20, output);
        }
        Message::Data { credits, flags, offset, len, remaining } => {
            output.enter(&SMB_DIRECT, 0..DATA_LEN);
            output.uint(&CREDITS_REQUESTED, credits.0, 0..2);
            output.uint(&CREDITS_GRANTED, credits.1, 2..4);
            output.uint(&FLAGS, flags, 4..6);
            output.bits(&RESPONSE_REQUESTED, flags, 4..6);
            output.uint(&REMAINING_LENGTH, remaining, 8..12);
            output.uint(&DATA_OFFSET, offset, 12..16);
            output.uint(&DATA_LENGTH, len, 16..20);
            if let Some(upper) = upper.filter(|upper| upper.fragments > 1) {
                output.derived(&FRAGMENT_COUNT, upper.fragments);
                output.derived(&FIRST_FRAME, upper.first_frame);
                output.derived(&REASSEMBLED_LENGTH, upper.len);
            }
        }
    }
    output.leave();
}

/// Visits the sizes at offset `at` of the message.
fn visit_sizes<V: Visitor>(sizes: Sizes, at: usize, output: &mut Output<'_, V>) {
    output.uint(&PREFERRED_SEND_SIZE, sizes.preferred_send, at..at + 4);
    output.uint(&MAX_RECEIVE_SIZE, sizes.max_receive, at + 4..at + 8);
    output.uint(&MAX_FRAGMENTED_SIZE, sizes.max_fragmented, at + 8..at + 12);
}

/// Visits the private data of a start-up frame, if it looks like private data of SMB Direct and the
/// responder has the port of SMB Direct.
pub(super) fn visit_startup<V: Visitor>(part: Part<'_>, server_port: u16, visitor: &mut V) {
    if server_port != PORT {
        return;
    }
    let Some((private, at)) = private_data(part) else { return };
    let Some(data) = PrivateData::parse(private) else { return };
    let mut output = Output::new(visitor, Some(at), part.len());
    output.enter(&PRIVATE_DATA, 0..8);
    match data.order {
        ByteOrder::Big => {
            output.uint(&PRIVATE_IRD, data.ird, 0..4);
            output.uint(&PRIVATE_ORD, data.ord, 4..8);
        }
        // The outputs show the octets of these fields as big-endian numbers.
        ByteOrder::Little => {
            output.derived(&PRIVATE_IRD, data.ird);
            output.derived(&PRIVATE_ORD, data.ord);
        }
    }
    output.name(&PRIVATE_ORDER, data.order.name());
    output.leave();
}
