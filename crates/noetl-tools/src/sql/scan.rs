//! Scans SQL text for the tokens that separate statements and mark parameters.

use std::ops::Range;

/// SQL dialect, which determines the quoting rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Dollar quotes, `E''` strings, and nested comments.
    Postgres,
    /// Backticks and square brackets quote names.
    Sqlite,
    /// Same quoting rules as Postgres.
    #[cfg_attr(not(feature = "duckdb"), expect(dead_code, reason = "only its tool asks for it"))]
    DuckDb,
}

/// A token of SQL. Comments and whitespace are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlToken<'a> {
    /// A bare word: a keyword or a name.
    Word(&'a str),
    /// `:name`, without its colon.
    Name(&'a str),
    /// `(`
    Open,
    /// `)`
    Close,
    /// `;`
    End,
    /// Strings, quoted names, numbers, and operators.
    Other,
}

/// Iterates over tokens with their byte ranges.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect) -> Self {
        Self { text, at: 0, dialect }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        loop {
            match (self.byte(0), self.byte(1)) {
                (b'-', b'-') => {
                    let line = &self.text[self.at..];
                    self.at += line.find('\n').unwrap_or(line.len());
                }
                (b'/', b'*') => self.comment(),
                (byte, _) if byte.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        let nests = self.dialect != Dialect::Sqlite;
        let mut depth = 0_usize;
        while self.at < self.text.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') if nests || depth == 0 => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips a quoted token. A doubled quote is an escaped one.
    fn quote(&mut self, close: u8, escapes: bool) {
        self.at += 1;
        while self.at < self.text.len() {
            let byte = self.byte(0);
            if escapes && byte == b'\\' {
                self.at += 2;
            } else if byte != close {
                self.at += 1;
            } else if self.byte(1) == close {
                self.at += 2;
            } else {
                self.at += 1;
                return;
            }
        }
        self.at = self.text.len();
    }

    /// Skips a dollar-quoted string, or the dollar sign and the characters after it if it opens
    /// none.
    fn dollar(&mut self) {
        let rest = &self.text[self.at + 1..];
        let length = rest.bytes().take_while(|byte| is_part(*byte) && *byte != b'$').count();
        let opens = self.dialect != Dialect::Sqlite
            && rest.as_bytes().get(length) == Some(&b'$')
            && !rest.as_bytes()[0].is_ascii_digit();
        if !opens {
            self.at += 1 + length;
            return;
        }
        let tag = &self.text[self.at..self.at + length + 2];
        let body = &self.text[self.at + tag.len()..];
        self.at += tag.len() + body.find(tag).map_or(body.len(), |end| end + tag.len());
    }

    fn word(&mut self) -> &'a str {
        let start = self.at;
        while is_part(self.byte(0)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = (Range<usize>, SqlToken<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip();
        let start = self.at;
        if start >= self.text.len() {
            return None;
        }
        let is_sqlite = self.dialect == Dialect::Sqlite;
        let token = match self.byte(0) {
            b'\'' => {
                self.quote(b'\'', false);
                SqlToken::Other
            }
            b'"' => {
                self.quote(b'"', false);
                SqlToken::Other
            }
            b'`' if is_sqlite => {
                self.quote(b'`', false);
                SqlToken::Other
            }
            b'[' if is_sqlite => {
                let rest = &self.text[start..];
                self.at += rest.find(']').map_or(rest.len(), |end| end + 1);
                SqlToken::Other
            }
            b'$' => {
                self.dollar();
                SqlToken::Other
            }
            b':' if is_start(self.byte(1)) => {
                self.at += 1;
                SqlToken::Name(self.word())
            }
            // A cast or an assignment, whose second character must not start a name.
            b':' if matches!(self.byte(1), b':' | b'=') => {
                self.at += 2;
                SqlToken::Other
            }
            b'(' => {
                self.at += 1;
                SqlToken::Open
            }
            b')' => {
                self.at += 1;
                SqlToken::Close
            }
            b';' => {
                self.at += 1;
                SqlToken::End
            }
            byte if is_start(byte) => {
                let word = self.word();
                if !is_sqlite && word.eq_ignore_ascii_case("e") && self.byte(0) == b'\'' {
                    self.quote(b'\'', true);
                    SqlToken::Other
                } else {
                    SqlToken::Word(word)
                }
            }
            byte if byte.is_ascii_digit() => {
                self.word();
                SqlToken::Other
            }
            _ => {
                self.at += 1;
                SqlToken::Other
            }
        };
        // An escape at the end of the text moves past it.
        self.at = self.at.min(self.text.len());
        Some((start..self.at, token))
    }
}

fn is_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_part(byte: u8) -> bool {
    is_start(byte) || byte.is_ascii_digit() || byte == b'$'
}
