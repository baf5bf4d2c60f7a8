//! Reads arbitrary bytes as a capture file and writes all output formats.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::capture::read(data));
