//! Sends arbitrary lines on the agent's control connection.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::agent::control_connection(data));
