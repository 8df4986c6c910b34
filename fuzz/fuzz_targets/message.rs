//! `noetl_fuzz::message` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| noetl_fuzz::message(data));
