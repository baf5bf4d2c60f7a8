//! Emits complete FPDUs and reads them again. Reads arbitrary bytes with arbitrary layouts.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::wire::fpdu(data));
