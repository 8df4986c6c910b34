//! Inputs of two parts.

/// Splits an input into the text before the first NUL and the bytes after it.
pub(crate) fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}
