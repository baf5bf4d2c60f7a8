//! Parses the RDMAP headers that follow a DDP header.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::wire::rdmap(data));
