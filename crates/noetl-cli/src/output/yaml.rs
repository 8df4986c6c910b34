//! Writes values as YAML that every parser reads alike. Quotes all strings that a parser could read
//! as another type.

use serde_json::Value;

/// Formats a value as a YAML document.
pub(crate) fn document(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0, ValuePosition::Start);
    text
}

/// Context that precedes a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePosition {
    /// The start of the document.
    Start,
    /// A key and its colon.
    Key,
    /// A dash and its space.
    Item,
}

fn write(out: &mut String, value: &Value, depth: usize, place: ValuePosition) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (number, (key, value)) in map.iter().enumerate() {
                begin(out, depth, place, number);
                out.push_str(&scalar(key));
                out.push(':');
                write(out, value, depth + 1, ValuePosition::Key);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                begin(out, depth, place, number);
                out.push_str("- ");
                write(out, item, depth + 1, ValuePosition::Item);
            }
        }
        other => {
            if place == ValuePosition::Key {
                out.push(' ');
            }
            match other {
                Value::String(text) if is_block(text) => block(out, text, depth.max(1)),
                Value::String(text) => out.push_str(&scalar(text)),
                Value::Object(_) => out.push_str("{}"),
                Value::Array(_) => out.push_str("[]"),
                other => out.push_str(&other.to_string()),
            }
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
    }
}

/// Starts a line for an entry. The first entry of a list item follows the dash on the same line.
fn begin(out: &mut String, depth: usize, place: ValuePosition, number: usize) {
    if place == ValuePosition::Item && number == 0 {
        return;
    }
    if place == ValuePosition::Key && number == 0 {
        out.push('\n');
    }
    out.push_str(&"  ".repeat(depth));
}

fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    // A JSON string is a valid YAML string, except for control characters that JSON doesn't escape.
    let quoted = Value::from(text).to_string();
    let escaped = quoted.chars().map(|c| match c {
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
            format!("\\u{:04x}", u32::from(c))
        }
        other => other.to_string(),
    });
    escaped.collect()
}

/// Returns `true` if every parser reads the unquoted text as this string.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 11] =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let is_common = |c: char| c.is_ascii_alphanumeric() || " _-./@+".contains(c);
    begins
        && !text.ends_with(' ')
        && text.chars().all(is_common)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns `true` if the text has several lines and a block scalar preserves it.
fn is_block(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.contains('\n')
        && !lines.ends_with('\n')
        && !lines.starts_with([' ', '\n'])
        && text
            .chars()
            .all(|c| c == '\n' || !(c.is_control() || "\u{2028}\u{2029}\u{feff}".contains(c)))
}

fn block(out: &mut String, text: &str, depth: usize) {
    out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str(&"  ".repeat(depth));
            out.push_str(line);
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_printed_in_block_style() {
        let value = json!({
            "id": "380499266977660928",
            "count": 3,
            "steps": [{"name": "start", "tags": []}, ["a", null], {}],
            "text": "one\n\n  two\n",
            "when": "2026-01-02T03:04:05Z",
        });
        assert_eq!(
            document(&value),
            "id: \"380499266977660928\"\ncount: 3\nsteps:\n  - name: start\n    tags: []\n  - - a\n    \
             - null\n  - {}\ntext: |\n  one\n\n    two\nwhen: \"2026-01-02T03:04:05Z\"\n"
        );
    }

    #[test]
    fn printed_documents_parse_to_the_same_value() {
        let texts = [
            "",
            " ",
            "a",
            "no",
            "Null",
            "1",
            "1e3",
            "0x1f",
            "a: b",
            "a #b",
            "- a",
            "a\nb",
            "a\nb\n",
            "a\n\n",
            "\na",
            " a\nb",
            "a\n b\n",
            "a\tb",
            "a\r\nb",
            "\u{1b}[2J",
            "\u{85}x",
            "é ü",
            "---",
            "...",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "?",
            "~",
            "\"",
            "'",
            "\\",
            "a\u{2028}b\nc",
            "\u{feff}",
            "😀",
            "a\n#b\nc",
            "=",
            "<<",
        ];
        let mut map = serde_json::Map::new();
        for text in texts {
            map.insert(text.to_owned(), json!([text, {"k": text, "deep": [[text]]}]));
        }
        let value =
            json!({"all": map, "numbers": [0, -1, 1.5, 1e300, u64::MAX], "b": [true, false]});
        let text = document(&value);
        let read = noetl_playbook::read_data(&text);
        assert_eq!(read.unwrap_or_else(|diagnostics| panic!("{diagnostics:?}\n{text}")), value);
        for text in texts {
            let read = noetl_playbook::read_data(&document(&json!(text)));
            assert_eq!(read.ok(), Some(json!(text)), "{text:?}");
        }
    }
}
