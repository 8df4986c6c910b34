//! Matches subjects against patterns with `*` and `>`.

/// Returns `true` if a subject matches a pattern. Tokens compare for equality; `*` matches one
/// token, and a trailing `>` matches one or more.
pub fn is_of(subject: &str, pattern: &str) -> bool {
    let mut tokens = subject.split('.');
    let mut wanted = pattern.split('.');
    loop {
        match (tokens.next(), wanted.next()) {
            (Some(_), Some(">")) => return wanted.next().is_none(),
            (Some(token), Some(want)) if want == "*" || token == want => {}
            (None, None) => return true,
            (Some(_) | None, _) => return false,
        }
    }
}

/// Returns `true` if a text is valid as one token of a subject: non-empty ASCII letters, digits,
/// `_`, `-`, and `:`, so that it contains no separator or wildcard.
pub fn is_token(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    !text.is_empty() && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_their_subjects() {
        for (subject, pattern) in
            [("a.b", "a.b"), ("a.b", "a.*"), ("a.b", "a.>"), ("a.b.c", "a.>"), ("a", ">")]
        {
            assert!(is_of(subject, pattern), "{subject} {pattern}");
        }
        for (subject, pattern) in [
            ("a", "a.>"),
            ("a.b", "a"),
            ("a", "a.b"),
            ("a.b.c", "a.*"),
            ("a.bc", "a.b"),
            ("ab.c", "a.>"),
            ("a.b.c", "a.>.c"),
        ] {
            assert!(!is_of(subject, pattern), "{subject} {pattern}");
        }
    }

    #[test]
    fn a_token_has_no_separators_or_wildcards() {
        assert!(is_token("shared") && is_token("gpu-2_a:b"));
        for wrong in ["", "a.b", "a b", "*", ">", "ü", "a/b"] {
            assert!(!is_token(wrong), "{wrong:?}");
        }
    }
}
