//! Finds the keys of an execution's state (`context` and `variables`) that Python code reads.
//!
//! Scans the code without parsing it. Keys written as string literals after the name are known; any
//! other use of the name may read every key.

use std::collections::BTreeSet;

/// Names through which code accesses the state of its execution.
const CARRIERS: [&str; 2] = ["context", "variables"];

/// Keys of the state that code reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedKeys {
    /// Only these keys, possibly none.
    Keys(BTreeSet<String>),
    /// Possibly any key, because the scan could not determine them.
    All,
}

/// Scans code for the keys of the state that it reads.
pub fn named_in(code: &str) -> NamedKeys {
    let mut keys = BTreeSet::new();
    if !CARRIERS.iter().any(|name| code.contains(name)) {
        return NamedKeys::Keys(keys);
    }
    let mut scanner = Scanner { rest: code, before: None, is_def: false };
    while let Some(word) = scanner.next_word() {
        if !CARRIERS.contains(&word) {
            continue;
        }
        match scanner.key() {
            Use::Key(key) => drop(keys.insert(key)),
            Use::Bound => {}
            Use::Whole => return NamedKeys::All,
        }
    }
    NamedKeys::Keys(keys)
}

/// Use of a name in the code.
enum Use {
    /// The name is read with this key.
    Key(String),
    /// The name is assigned, or is a parameter.
    Bound,
    /// The use may read any key.
    Whole,
}

struct Scanner<'a> {
    rest: &'a str,
    /// Last non-whitespace character before the current word.
    before: Option<char>,
    /// Whether the current line defines a function.
    is_def: bool,
}

impl<'a> Scanner<'a> {
    /// Returns the next word that is not an attribute. Skips comments and strings.
    fn next_word(&mut self) -> Option<&'a str> {
        loop {
            let first = self.rest.chars().next()?;
            match first {
                '#' => self.skip_to_end_of_line(),
                '\'' | '"' => drop(self.text()),
                '\n' => {
                    self.is_def = false;
                    self.step(first);
                }
                _ if is_of_word(first) => {
                    let end = self.rest.find(|c| !is_of_word(c)).unwrap_or(self.rest.len());
                    let (word, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    let is_attribute = self.before == Some('.');
                    self.before = Some('a');
                    self.is_def |= word == "def" || word == "lambda";
                    if !is_attribute {
                        return Some(word);
                    }
                }
                _ => self.step(first),
            }
        }
    }

    /// Classifies the use of the name that was just read.
    fn key(&mut self) -> Use {
        let rest = self.rest.trim_start_matches([' ', '\t']);
        let is_assigned = rest.starts_with('=') && !rest.starts_with("==");
        if is_assigned || self.is_def && rest.starts_with([',', ')', ':']) {
            return Use::Bound;
        }
        let call = rest.strip_prefix(".get").map(str::trim_start);
        let inner = match call {
            Some(call) => call.strip_prefix('('),
            None => rest.strip_prefix('['),
        };
        let Some(inner) = inner.map(str::trim_start) else { return Use::Whole };
        let mut inner = Scanner { rest: inner, before: None, is_def: false };
        let is_plain = inner.rest.starts_with(['\'', '"']);
        match inner.text().filter(|_| is_plain) {
            // A string that is part of a longer expression is not the whole key.
            Some(key) if inner.rest.trim_start().starts_with([']', ')', ',']) => {
                self.rest = inner.rest;
                Use::Key(key.to_owned())
            }
            _ => Use::Whole,
        }
    }

    /// Skips a string and returns the text between its quotes, as written.
    fn text(&mut self) -> Option<&'a str> {
        let quote = self.rest.chars().next()?;
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let mark = if self.rest.starts_with(&triple) { triple } else { quote.to_string() };
        let inside = &self.rest[mark.len()..];
        let mut from = 0;
        let end = loop {
            let Some(offset) = inside[from..].find([quote, '\\']) else { break inside.len() };
            let at = from + offset;
            if inside[at..].starts_with('\\') {
                let escaped = inside[at + 1..].chars().next().map_or(0, char::len_utf8);
                from = at + 1 + escaped;
            } else if inside[at..].starts_with(&mark) {
                break at;
            } else {
                from = at + quote.len_utf8();
            }
        };
        self.rest = inside.get(end + mark.len()..).unwrap_or_default();
        self.before = Some(quote);
        Some(&inside[..end])
    }

    fn skip_to_end_of_line(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    fn step(&mut self, first: char) {
        if !first.is_whitespace() {
            self.before = Some(first);
        }
        self.rest = &self.rest[first.len_utf8()..];
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(code: &str) -> Vec<String> {
        match named_in(code) {
            NamedKeys::Keys(keys) => keys.into_iter().collect(),
            NamedKeys::All => vec!["*".to_owned()],
        }
    }

    #[test]
    fn literal_keys_are_detected() {
        assert_eq!(keys("result = context.get('fetch')"), ["fetch"]);
        assert_eq!(keys("result = context[\"ctx\"]['n'] + variables.get( 'w', 1)"), ["ctx", "w"]);
        assert_eq!(keys("def main(input_data, context):\n    return context['a']\n"), ["a"]);
        assert_eq!(keys("async def main(context: dict) -> int:\n  return context['a']"), ["a"]);
        assert_eq!(keys("context = {}\nresult = self.context + x.variables"), [""; 0]);
        assert_eq!(keys("# context\nresult = 'context' + \"\"\"\nvariables\n\"\"\""), [""; 0]);
        assert_eq!(keys("result = 1"), [""; 0]);
        assert_eq!(keys("f(context=1)\ncontextual = 2"), [""; 0]);
    }

    #[test]
    fn any_other_use_counts_as_access_to_every_key() {
        for code in [
            "result = context",
            "for key in context: pass",
            "context[name]",
            "context.get(name)",
            "context['a' + b]",
            "context[f'{a}']",
            "context.items()",
            "print(context)",
            "f(context=context)",
            "if context == other: pass",
            "context['unclosed",
        ] {
            assert_eq!(named_in(code), NamedKeys::All, "{code}");
        }
    }

    #[test]
    fn invalid_python_is_scanned_to_its_end() {
        for code in ["'", "\"\"\"", "context['\\", "context.get(", "context[", "é context", "\\"] {
            named_in(code);
        }
    }
}
