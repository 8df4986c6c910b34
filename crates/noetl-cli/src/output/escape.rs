//! Escapes untrusted text for a terminal.
//!
//! Output of a step can contain control sequences that move the cursor, change colors, set a title,
//! or reverse the text direction, so that the terminal shows something other than the text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns `true` for a character that controls a terminal instead of being displayed.
pub(crate) fn is_acting(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// Returns text with control characters as `\uXXXX`, other than line breaks and tabs. The meaning
/// of JSON and double-quoted YAML does not change.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| matches!(c, '\n' | '\t') || !is_acting(c);
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_shown(c) {
            true => safe.push(c),
            false => {
                let _ = write!(safe, "\\u{:04x}", u32::from(c));
            }
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let hostile = "a\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J\r\u{8}\u{7f}\u{202e}b\tc\nd é";
        let safe = r"a\u001b[31mred\u001b]0;title\u0007\u009b2J\u000d\u0008\u007f\u202eb";
        assert_eq!(escaped(hostile), format!("{safe}\tc\nd é"));
        assert!(matches!(escaped("plain é\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn escaped_json_parses_to_the_same_value() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}[2J", "\u{7f}\u{202e}"]});
        let shown = escaped(&format!("{value:#}")).into_owned();
        assert!(!shown.chars().any(|c| is_acting(c) && c != '\n'), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(read, value);
    }
}
