//! The forms in which a secret may turn up.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::{
    BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD,
};

/// Every form a value is looked for in: itself, as JSON writes it (also within JSON), URL-encoded,
/// and in base64 wherever it begins in what was encoded.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut found = vec![value.to_owned()];
    let escaped = json_escaped(value);
    found.push(json_escaped(&escaped));
    found.push(escaped);
    found.push(ascii_escaped(value));
    for form in percent_encoded(value) {
        found.push(form.to_ascii_lowercase_codes());
        found.push(form.0);
    }
    found.extend(base64_forms(value));
    found.sort_unstable();
    found.dedup();
    found
}

/// The shortest line of a secret of several lines that is looked for alone.
const LINE_MIN: usize = 24;

/// Lines of a secret of several lines that are secret by themselves: what prints a key line by line
/// is seen line by line. Those with blanks are prose or settings that others have too, and the
/// frame of a key is everybody's.
pub(super) fn telling_lines(value: &str) -> impl Iterator<Item = String> {
    let lines = value.contains('\n').then(|| value.lines()).into_iter().flatten();
    lines
        .map(str::trim)
        .filter(|line| {
            line.len() >= LINE_MIN && !line.starts_with("--") && !line.contains(char::is_whitespace)
        })
        .map(str::to_owned)
}

/// As a JSON text holds it, without the quotes.
fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As a JSON text holds it that is kept to ASCII.
fn ascii_escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in json_escaped(value).chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// A text with percent signs.
struct Encoded(String);

impl Encoded {
    /// The same with its codes in lower case.
    fn to_ascii_lowercase_codes(&self) -> String {
        let mut bytes = self.0.clone().into_bytes();
        let places: Vec<usize> =
            bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').map(|(at, _)| at).collect();
        for at in places {
            if let Some(code) = bytes.get_mut(at + 1..at + 3) {
                code.make_ascii_lowercase();
            }
        }
        String::from_utf8(bytes).unwrap_or_default()
    }
}

/// As a part of a URL, by those who leave marks such as `!` alone and those who do not, and as a
/// form holds it.
fn percent_encoded(value: &str) -> [Encoded; 3] {
    let encode = |plain: &str, blank: &str| {
        let mut text = String::with_capacity(value.len());
        for byte in value.bytes() {
            match char::from(byte) {
                ' ' => text.push_str(blank),
                c if c.is_ascii_alphanumeric() || plain.contains(c) => text.push(c),
                _ => {
                    let _ = write!(text, "%{byte:02X}");
                }
            }
        }
        Encoded(text)
    };
    [encode("-._~", "%20"), encode("-._~!'()*", "%20"), encode("-._*", "+")]
}

/// The base64 of the value alone, and what is certain of the base64 of anything that contains it:
/// the characters at either end depend on what stands beside it.
fn base64_forms(value: &str) -> Vec<String> {
    let mut found = vec![
        BASE64_STANDARD.encode(value),
        BASE64_STANDARD_NO_PAD.encode(value),
        BASE64_URL_SAFE.encode(value),
        BASE64_URL_SAFE_NO_PAD.encode(value),
    ];
    for before in 0..3_usize {
        let bytes = [&[0_u8; 2][..before], value.as_bytes()].concat();
        // Bits of what stands before reach into the character after theirs; what stands behind
        // reaches into the last one when the bytes do not come out even.
        let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for text in [BASE64_STANDARD_NO_PAD.encode(&bytes), BASE64_URL_SAFE_NO_PAD.encode(&bytes)] {
            found.extend(text.get(first..last).map(str::to_owned));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_seen_line_by_line_and_what_everybody_writes_is_not() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
        let key =
            format!("-----BEGIN PRIVATE KEY-----\n  {line}\r\nshort\n-----END PRIVATE KEY-----\n");
        assert_eq!(telling_lines(&key).collect::<Vec<_>>(), [line]);
        let settings = "apiVersion: v1\ncurrent-context: the-production-cluster\n";
        assert_eq!(telling_lines(settings).count(), 0);
        assert_eq!(telling_lines(line).count(), 0, "it is looked for whole already");
    }
}
