//! Complete FPDUs, written and read back; any octets under any layout.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::wire::fpdu(data));
