//! TCP segments with any sequence numbers, flags, cuts, in any order.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::stream::any_segments(data));
