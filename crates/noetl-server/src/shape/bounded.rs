//! Bounded length of messages.

/// Maximum bytes of a message's beginning and end.
const SAID: (usize, usize) = (1500, 300);

/// Truncates the middle of a long message. A caller that sends a megabyte as a name doesn't get it
/// back in full. The end is included because it states the expected form.
pub(crate) fn bounded(message: String) -> String {
    let (first, last) = SAID;
    if message.len() <= first + last {
        return message;
    }
    let (first, last) =
        (message.floor_char_boundary(first), message.ceil_char_boundary(message.len() - last));
    format!("{} … {}", &message[..first], &message[last..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_an_end_and_keeps_its_beginning() {
        let long = format!("begins {} ends", "é".repeat(1 << 20));
        let cut = bounded(long);
        assert!(cut.starts_with("begins é") && cut.ends_with("é ends"), "{cut}");
        assert!(cut.len() < 2000, "{}", cut.len());
        assert_eq!(bounded("short".to_owned()), "short");
    }
}
