//! Parses DDP segments. If a segment is emitted and parsed again, the result must be the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::wire::ddp(data));
