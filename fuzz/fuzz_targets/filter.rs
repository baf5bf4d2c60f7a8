//! Parses arbitrary text as a display filter.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::filter::any_text(data));
