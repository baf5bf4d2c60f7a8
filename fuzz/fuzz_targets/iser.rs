//! Reads connections of iSER with changed and arbitrary messages.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::upper::iser(data));
