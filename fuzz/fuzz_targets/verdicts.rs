#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| midwire_fuzz::verdicts(data));
