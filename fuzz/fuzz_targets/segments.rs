//! Dissects TCP segments in any order, with arbitrary sequence numbers, flags and truncation.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::stream::any_segments(data));
