//! DDP segments: what is read is written again as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::wire::ddp(data));
