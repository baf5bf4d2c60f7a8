//! FPDUs good and bad, and junk between them: every split into TCP segments gives the same units.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weft_fuzz::stream::any_split(data));
