//! Reads an FPDU in hexadecimal, checks its CRC and prints its DDP header.
//!
//! ```text
//! cargo run -p weft-core --example fpdu -- 0022 4143 ...
//! ```
//!
//! Without hexadecimal digits, the example reads an FPDU that `rping` sent.
//!
//! The exit status is 1 if the FPDU violates a requirement.

use std::env;
use std::process::ExitCode;

use weft_core::WireError;
use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::fpdu::{Fpdu, Layout};

/// Frame 10 of `captures/siw/rping-crc.pcap`. The Linux kernel's iWARP driver sends the address and
/// the key of a buffer.
const SEND: &str = "0022 4143 00000000 00000000 00000001 00000000 000055e8 7d4e5b50 261a4f00 000003e8 6206da09";

fn main() -> ExitCode {
    let arguments: String = env::args().skip(1).collect();
    let text = if arguments.is_empty() { SEND } else { &arguments };
    let Some(bytes) = from_hex(text) else {
        eprintln!("cannot read {text:?} as hexadecimal bytes; example: {SEND}");
        return ExitCode::from(2);
    };
    match print(&bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            if let Some(requirement) = error.requirement {
                let row = requirement.row();
                eprintln!("{requirement} ({}, {}): {}", row.level, row.citation(), row.summary);
            }
            ExitCode::FAILURE
        }
    }
}

fn print(bytes: &[u8]) -> Result<(), WireError> {
    // The length field comes first. This connection has no markers.
    let length = bytes.first_chunk().map_or(0, |field| u16::from_be_bytes(*field));
    let fpdu = Fpdu::new(bytes, Layout::new(0, length, None))?;
    fpdu.check_crc()?;
    println!("FPDU: {} bytes, ULPDU of {length} bytes, correct CRC", bytes.len());
    let ulpdu: Vec<u8> = fpdu.ulpdu().flatten().copied().collect();
    let segment = Segment::parse(&ulpdu)?;
    let opcode = segment.ulp_control().opcode();
    match segment {
        Segment::Tagged(header, payload) => {
            let (stag, offset) = (header.stag.get(), header.tagged_offset.get());
            println!(
                "opcode {opcode:?}: tagged, STag {stag:#010x}, TO {offset:#x}, {} bytes of payload",
                payload.len()
            );
        }
        Segment::Untagged(header, payload) => {
            let (qn, msn, mo) = (header.qn.get(), header.msn.get(), header.mo.get());
            println!("opcode {opcode:?}: untagged, QN {qn}, MSN {msn}, MO {mo}, {} bytes of payload", payload.len());
        }
    }
    Ok(())
}

/// Converts hexadecimal text to bytes, and ignores blanks. Returns `None` if the number of digits
/// is odd, or if any other character is not a hexadecimal digit.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16));
    let digits = digits.collect::<Option<Vec<_>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| u8::try_from(high << 4 | low).ok());
    if rest.is_empty() { bytes.collect() } else { None }
}
