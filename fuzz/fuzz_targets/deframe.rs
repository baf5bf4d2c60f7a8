//! Dissects correct and wrong FPDUs with random bytes between them. The units must not depend on
//! how the stream is split into TCP segments.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::stream::any_split(data));
