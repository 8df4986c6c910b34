//! `noetl_fuzz::kafka` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| noetl_fuzz::kafka(data));
