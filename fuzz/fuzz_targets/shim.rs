//! Parses lines between the preload library and its agent.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::messages::shim(data));
