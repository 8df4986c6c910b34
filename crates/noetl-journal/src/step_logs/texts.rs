//! Splits printed text into lines.

use noetl_store::step_logs::LINE_BYTES_MAX;

use super::Printed;

/// Joins consecutive texts of one command and stream, so a secret that spans lines is recognized.
pub(super) fn join(texts: &mut Vec<Printed>, printed: Printed) {
    match texts.last_mut() {
        Some(last)
            if last.command == printed.command
                && last.stream == printed.stream
                && last.text.ends_with('\n') =>
        {
            last.text.push_str(&printed.text);
        }
        _ => texts.push(printed),
    }
}

/// Splits text into lines. Replaces NUL characters, which not every store supports, and cuts long
/// lines into pieces of at most [`LINE_BYTES_MAX`] bytes.
pub(super) fn split(text: &str) -> impl Iterator<Item = String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line).replace('\0', "\u{fffd}");
        pieces(line)
    })
}

fn pieces(mut line: String) -> Vec<String> {
    let mut pieces = Vec::new();
    while line.len() > LINE_BYTES_MAX {
        let mut at = LINE_BYTES_MAX;
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        let rest = line.split_off(at);
        pieces.push(std::mem::replace(&mut line, rest));
    }
    pieces.push(line);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        split(text).collect()
    }

    #[test]
    fn a_text_is_cut_into_lines() {
        assert_eq!(lines("a\nb\n"), ["a", "b"]);
        assert_eq!(lines("a\r\n\nb"), ["a", "", "b"]);
        assert_eq!(lines("a\0b"), ["a\u{fffd}b"]);
        assert_eq!(lines("\n"), [""]);
    }

    #[test]
    fn a_long_line_is_split_between_characters() {
        let long = "é".repeat(LINE_BYTES_MAX);
        let pieces = lines(&long);
        assert!(pieces.len() == 2 && pieces.iter().all(|piece| piece.len() <= LINE_BYTES_MAX));
        assert_eq!(pieces.concat(), long);
    }
}
