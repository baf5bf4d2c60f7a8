//! These habits (changes of a capture) change a capture as if its endpoints did not use CRC. Bit C
//! of the start-up frames is clear, and the CRC fields have no meaning.
//!
//! To find the CRC fields, these habits dissect the original frames, in which the CRCs are still
//! valid.

use weft_dissector::source::Frame;
use weft_dissector::unit::{Kind, Location, Unit};
use weft_dissector::{Dissector, FrameNumber, Sink};

use super::{Dice, Frames};

/// Bit C of the flags, octet 16 of a start-up frame.
const C: u8 = 0x40;

/// The locations of the flags and CRC fields.
#[derive(Default)]
struct Fields {
    flags: Vec<Location>,
    crcs: Vec<Location>,
}

impl Sink for Fields {
    fn unit(&mut self, unit: &Unit<'_>) {
        match &unit.kind {
            Kind::Startup(..) => self.flags.extend(unit.locate(16..17)),
            Kind::Fpdu(fpdu) => self.crcs.extend(unit.locate(fpdu.body.len()..fpdu.body.len() + 4)),
            _ => {}
        }
    }
}

fn off(frames: &mut Frames, mut field: impl FnMut() -> u8) {
    let (mut dissector, mut fields) = (Dissector::units_only(), Fields::default());
    for (frame, number) in frames.iter().zip((1..).map(FrameNumber::from)) {
        let super::CapturedFrame { time, interface, link_type, octets, wire_len } = frame;
        let (time, interface, link_type, wire_len) = (*time, *interface, *link_type, *wire_len);
        let frame = Frame { number, time, interface, link_type, octets, wire_len };
        dissector.frame(&frame, &mut fields);
    }
    dissector.finish(&mut fields);
    let mut change = |located: Vec<Location>, change: &mut dyn FnMut(&mut u8)| {
        for Location { frame, offset, len } in located {
            let Some(from) = offset.map(|offset| offset as usize) else { continue };
            let octets = &mut frames[usize::try_from(u64::from(frame)).unwrap() - 1].octets;
            octets[from..from + usize::try_from(len).unwrap()].iter_mut().for_each(&mut *change);
        }
    };
    change(fields.flags, &mut |octet| *octet &= !C);
    change(fields.crcs, &mut |octet| *octet = field());
}

pub(super) fn zero(frames: &mut Frames, _: &mut Dice) {
    off(frames, || 0);
}

pub(super) fn anything(frames: &mut Frames, dice: &mut Dice) {
    off(frames, || u8::try_from(dice.below(256)).unwrap());
}
