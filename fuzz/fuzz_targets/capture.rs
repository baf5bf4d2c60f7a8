//! Any octets as a capture file, through everything up to the outputs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::capture::read(data));
