//! Parsers of the core.

use weft_core::wire::ddp::{Segment, Tagged, Untagged};
use weft_core::wire::mpa::{Fpdu, Framing, Layout, Startup, fpdu as wire_fpdu};
use weft_core::wire::rdmap::{AtomicRequest, AtomicResponse, Immediate, ReadRequest, Terminate};
use weft_core::wire::sdp::{FieldOrder, Message};

/// Parses `$data` as `$type`; what comes of it is emitted and parsed again, and must be the same.
macro_rules! again {
    ($type:ty, $data:expr $(, $order:expr)?) => {
        if let Ok(first) = <$type>::parse($data $(, $order)?) {
            let mut out = Vec::new();
            first.emit($($order,)? &mut out);
            assert_eq!(<$type>::parse(&out $(, $order)?).as_ref(), Ok(&first), "written as {out:02x?}");
        }
    };
}

/// MPA Request and Reply frames.
pub fn startup(data: &[u8]) {
    again!(Startup<'_>, data);
}

/// DDP segments, tagged and untagged, of any version.
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

/// RDMAP headers after the DDP header.
pub fn rdmap(data: &[u8]) {
    again!(ReadRequest, data);
    again!(Terminate, data);
    again!(AtomicRequest, data);
    again!(AtomicResponse, data);
    again!(Immediate, data);
}

/// SDP messages in both field orders.
pub fn sdp(data: &[u8]) {
    again!(Message<'_>, data, FieldOrder::Figure);
    again!(Message<'_>, data, FieldOrder::Mirrored);
    let _ = (FieldOrder::of_hello(data), FieldOrder::of_hello_ack(data));
}

/// Port mapper messages.
pub fn portmap(data: &[u8]) {
    again!(weft_core::wire::portmap::Message, data);
}

/// FPDUs: position, settings and ULPDU from the data; then the same data under any layout of its
/// length.
pub fn fpdu(data: &[u8]) {
    let [high, low, flags, length_high, length_low, rest @ ..] = data else { return };
    // FPDUs and markers begin at multiples of four from the start.
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
