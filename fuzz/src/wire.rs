//! Tests the parsers of the core crate.

use weft_core::wire::ddp::{Segment, Tagged, Untagged};
use weft_core::wire::mpa::{Fpdu, Framing, Layout, Startup, fpdu as wire_fpdu};
use weft_core::wire::rdmap::{AtomicRequest, AtomicResponse, Immediate, ReadRequest, Terminate};
use weft_core::wire::sdp::{FieldOrder, Message};

/// Parses `$data` as `$type`. If parsing succeeds and the value is emitted and parsed again, the
/// result must be the same value.
macro_rules! round_trip {
    ($type:ty, $data:expr $(, $order:expr)?) => {
        if let Ok(first) = <$type>::parse($data $(, $order)?) {
            let mut out = Vec::new();
            first.emit($($order,)? &mut out);
            assert_eq!(<$type>::parse(&out $(, $order)?).as_ref(), Ok(&first), "written as {out:02x?}");
        }
    };
}

/// Tests MPA Request and Reply frames.
pub fn startup(data: &[u8]) {
    round_trip!(Startup<'_>, data);
}

/// Tests tagged and untagged DDP segments of both versions.
pub fn ddp(data: &[u8]) {
    let _ = Segment::parse(data);
    for version in 0..=1 {
        if let Ok((header, control, payload)) = Tagged::parse(data, version) {
            let mut out = Vec::new();
            let at = header.emit(version, control, &mut out);
            out.extend_from_slice(payload);
            assert_eq!(Tagged::parse(&out, version), Ok((header, control, &out[at..])));
        }
        if let Ok((header, ulp, payload)) = Untagged::parse(data, version) {
            let mut out = Vec::new();
            let at = header.emit(version, ulp, &mut out);
            out.extend_from_slice(payload);
            assert_eq!(Untagged::parse(&out, version), Ok((header, ulp, &out[at..])));
        }
    }
}

/// Tests the RDMAP headers that follow a DDP header.
pub fn rdmap(data: &[u8]) {
    round_trip!(ReadRequest, data);
    round_trip!(Terminate, data);
    round_trip!(AtomicRequest, data);
    round_trip!(AtomicResponse, data);
    round_trip!(Immediate, data);
}

/// Tests SDP messages in both field orders.
pub fn sdp(data: &[u8]) {
    round_trip!(Message<'_>, data, FieldOrder::Figure);
    round_trip!(Message<'_>, data, FieldOrder::Mirrored);
    let _ = (FieldOrder::of_hello(data), FieldOrder::of_hello_ack(data));
}

/// Tests port mapper messages.
pub fn portmap(data: &[u8]) {
    round_trip!(weft_core::wire::portmap::Message, data);
}

/// Tests FPDUs. First emits an FPDU whose position, settings and ULPDU come from `data`, and reads
/// this FPDU. Then reads bytes of `data` as an FPDU whose layout also comes from `data`.
pub fn fpdu(data: &[u8]) {
    let [high, low, flags, length_high, length_low, rest @ ..] = data else { return };
    // FPDUs and markers begin at multiples of four bytes from the start of the stream.
    let position = u64::from(u16::from_be_bytes([*high, *low])) * 4;
    let framing = Framing { markers: flags & 1 != 0, crc: flags & 2 != 0 };
    let (front, back) = rest.split_at(rest.len() / 2);
    let mut out = Vec::new();
    if let Ok(layout) = wire_fpdu::emit(position, &[front, back], framing, &mut out) {
        assert_eq!(layout.end - layout.start, out.len() as u64);
        let read = Fpdu::new(&out, layout).expect("the length is that of the layout");
        assert_eq!(read.ulpdu().collect::<Vec<_>>().concat(), rest);
        assert_eq!((read.check_markers(), framing.crc && read.check_crc().is_err()), (Ok(()), false));
    }
    let phase = (flags & 4 != 0).then_some(u16::from_be_bytes([*length_low, *length_high]) % 512);
    let layout = Layout::new(position, u16::from_be_bytes([*length_high, *length_low]), phase);
    if let Ok(read) = Fpdu::new(rest, layout) {
        let _ = (read.check_crc(), read.check_markers(), read.pad().count());
    }
}
