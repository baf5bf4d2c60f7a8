//! Parses messages that the workloads receive from peers.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::messages::workload(data));
