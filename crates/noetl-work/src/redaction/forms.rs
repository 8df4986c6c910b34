//! Encodings in which a secret may appear.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::{
    BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Returns every form of a value to search for: the value itself, escaped for JSON (also nested),
/// for HTML, URL-encoded, and in base64 at any offset of the encoded data.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut found = vec![value.to_owned()];
    let escaped = json_escaped(value);
    found.push(json_escaped(&escaped));
    found.push(escaped);
    found.push(ascii_escaped(value));
    found.extend(html_escaped(value));
    found.extend(percent_encoded(value));
    found.extend(base64_forms(value));
    found.sort_unstable();
    found.dedup();
    found
}

/// Minimum length of a secret's line that is searched anywhere in a text, in bytes.
const LINE_MIN: usize = 8;

/// Minimum length of a secret's line that is searched as a whole line, in bytes: one base64 group.
const WHOLE_LINE_MIN: usize = 4;

/// Lines of a multi-line secret, such as a key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SecretLines {
    /// Lines searched anywhere in a text.
    pub(super) anywhere: Vec<String>,
    /// Lines that match only a whole line: short ones, and those with spaces, which are prose or
    /// settings that other texts contain too.
    pub(super) whole: Vec<String>,
}

/// Returns the lines of a multi-line secret, because programs print a key line by line. Skips the
/// delimiters of a PEM key, which are not secret.
pub(super) fn lines(value: &str) -> SecretLines {
    let mut found = SecretLines::default();
    if !value.contains('\n') {
        return found;
    }
    for line in value.lines().map(str::trim).filter(|line| !line.starts_with("-----")) {
        let is_text = line.contains(char::is_whitespace);
        match line.len() {
            LINE_MIN.. if !is_text => found.anywhere.push(line.to_owned()),
            WHOLE_LINE_MIN.. => found.whole.push(line.to_owned()),
            _ => {}
        }
    }
    found
}

/// Names of parameters and settings whose values are secret.
const SECRET_NAMES: [&str; 14] = [
    "access_token",
    "accountkey",
    "api_key",
    "apikey",
    "client_secret",
    "key",
    "passwd",
    "password",
    "pwd",
    "secret",
    "sharedaccesskey",
    "sig",
    "signature",
    "token",
];

/// Schemes of the `Authorization` header.
const SCHEMES: [&str; 4] = ["basic ", "bearer ", "digest ", "token "];

/// Returns the secrets within a secret: the password of a URL, values of secret settings in a
/// connection string or query, and the credentials after the scheme of a header.
pub(super) fn parts(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if let Some((_, rest)) = text.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        // A password may contain an unencoded slash; then the host follows the last `@`.
        let password =
            password.or_else(|| rest.rsplit_once('@').and_then(|(u, _)| u.split_once(':')));
        found.extend(password.map(|(_, password)| password.to_owned()));
    }
    for word in text.split([' ', ';', '&', '?', '\n']) {
        if let Some((name, value)) = word.split_once('=')
            && SECRET_NAMES.contains(&name.trim().to_ascii_lowercase().as_str())
        {
            found.push(value.trim().trim_matches(['\'', '"']).to_owned());
        }
    }
    let header = text.split_once(": ").map_or(text, |(_, value)| value);
    for scheme in SCHEMES {
        let head = header.get(..scheme.len());
        if head.is_some_and(|head| head.eq_ignore_ascii_case(scheme)) {
            let value = header[scheme.len()..].trim();
            found.push(value.to_owned());
            let decoded = BASE64_STANDARD.decode(value).ok();
            let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
            let password = decoded.as_deref().and_then(|pair| pair.split_once(':'));
            found.extend(password.map(|(_, password)| password.to_owned()));
        }
    }
    found.retain(|secret| !secret.is_empty());
    let decoded: Vec<String> = found.iter().filter_map(|secret| percent_decoded(secret)).collect();
    found.extend(decoded);
    found
}

/// Returns a text with its percent codes decoded, or `None` if it has none or is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

/// Returns the HTML-escaped variants of a text: quotes as names, as numbers, or unescaped.
fn html_escaped(value: &str) -> [String; 4] {
    let encode = |quotes: [&str; 2]| {
        let text = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', quotes[0]).replace('\'', quotes[1])
    };
    [
        encode(["\"", "'"]),
        encode(["&quot;", "'"]),
        encode(["&quot;", "&#39;"]),
        encode(["&#34;", "&#x27;"]),
    ]
}

/// Returns a value escaped for a JSON string, without the quotes.
fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns a value escaped for an ASCII-only JSON string, without the quotes.
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

/// Characters encoded in a path or query: all but those that URLs never reserve.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Like [`RESERVED`], but without the marks that JavaScript's `encodeURIComponent` leaves.
const UNMARKED: &AsciiSet =
    &RESERVED.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');

/// Characters encoded in form data. A blank becomes `+`.
const FORM: &AsciiSet = &RESERVED.add(b'~').remove(b'*');

/// Returns the percent-encoded variants of a value, each with codes in upper and lower case: with
/// marks such as `!` encoded, with them unencoded, and as form data.
fn percent_encoded(value: &str) -> Vec<String> {
    let encode = |set| utf8_percent_encode(value, set).to_string();
    let mut found = vec![encode(RESERVED), encode(UNMARKED), encode(FORM).replace("%20", "+")];
    let lower: Vec<String> = found.iter().map(|text| lower_case_codes(text)).collect();
    found.extend(lower);
    found
}

/// Returns a percent-encoded text with its codes in lower case.
fn lower_case_codes(text: &str) -> String {
    let mut parts = text.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Two digits follow each `%`.
        let (code, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        lower.extend(["%", &code.to_ascii_lowercase(), rest]);
    }
    lower
}

/// Columns at which base64 is wrapped: PEM and MIME.
const WRAPPED: [usize; 2] = [64, 76];

/// Returns the base64 of the value alone, and the invariant part of the base64 of any data that
/// contains it: the characters at either end depend on the adjacent bytes.
fn base64_forms(value: &str) -> Vec<String> {
    let mut found = vec![
        BASE64_STANDARD.encode(value),
        BASE64_STANDARD_NO_PAD.encode(value),
        BASE64_URL_SAFE.encode(value),
        BASE64_URL_SAFE_NO_PAD.encode(value),
    ];
    // Programs wrap long base64.
    for columns in WRAPPED {
        let whole = BASE64_STANDARD.encode(value);
        if whole.len() > columns {
            let broken = whole.as_bytes().chunks(columns).map(String::from_utf8_lossy);
            found.extend(broken.map(String::from).filter(|line| line.len() >= 2 * LINE_MIN));
        }
    }
    for before in 0..3_usize {
        let bytes = [&[0_u8; 2][..before], value.as_bytes()].concat();
        // Bits of preceding bytes reach into the first character. Bits of following bytes reach
        // into the last one if the bytes do not fill it.
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
    fn a_key_is_seen_line_by_line_and_its_frame_is_not() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
        let key = format!(
            "-----BEGIN PRIVATE KEY-----\n  {line}\r\nAb3=\nx\n-----END PRIVATE KEY-----\n"
        );
        let found = lines(&key);
        assert_eq!((found.anywhere, found.whole), (vec![line.to_owned()], vec!["Ab3=".to_owned()]));
        let settings = "apiVersion: v1\ncurrent-context: the-production-cluster\n";
        assert_eq!(lines(settings).anywhere, [""; 0]);
        assert_eq!(lines(line), SecretLines::default(), "it is looked for whole already");
    }

    #[test]
    fn a_value_is_percent_encoded_as_browsers_and_forms_do() {
        assert_eq!(
            percent_encoded("a b/!~*'()+%é"),
            [
                "a%20b%2F%21~%2A%27%28%29%2B%25%C3%A9",
                "a%20b%2F!~*'()%2B%25%C3%A9",
                "a+b%2F%21%7E*%27%28%29%2B%25%C3%A9",
                "a%20b%2f%21~%2a%27%28%29%2b%25%c3%a9",
                "a%20b%2f!~*'()%2b%25%c3%a9",
                "a+b%2f%21%7e*%27%28%29%2b%25%c3%a9",
            ]
        );
    }

    #[test]
    fn percent_codes_are_decoded_and_other_percent_signs_stay() {
        for (text, expected) in [
            ("p%40ss%2f", Some("p@ss/")),
            ("50%+5%zz%4", Some("50%+5%zz%4")),
            ("plain", None),
            ("%FF", None),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_secrets_within_a_secret_are_found() {
        let cases = [
            ("postgres://u:p%40ssword@h:5432/d", vec!["p%40ssword", "p@ssword"]),
            ("https://h/x?a=1&sig=abcdefgh", vec!["abcdefgh"]),
            ("Server=h;User=u;Password=\"geheimnis\";", vec!["geheimnis"]),
            ("host=h password='longer'", vec!["longer"]),
            ("Bearer abc.def", vec!["abc.def"]),
            ("Authorization: Basic dTpnZWhlaW0=", vec!["dTpnZWhlaW0=", "geheim"]),
            ("https://api.example.com/v1?page=2", vec![]),
            ("just a text", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), expected, "{text}");
        }
    }
}
