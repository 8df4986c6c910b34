//! Maps positions inside a scalar to positions in the file.
//!
//! A scalar is not always a slice of the file: quotes are escaped, block scalars lose their
//! indentation, and folded ones their line breaks. [`locate`] walks both in parallel. Where they
//! differ unexpectedly, it returns the start of the scalar, which is always a valid position.

use super::node::QuoteStyle;
use super::source::SourceText;
use crate::diagnostic::SourcePos;

/// Returns the file position of the character at `line` and `column` (from 1) of a scalar.
pub(crate) fn locate(
    source: &SourceText<'_>,
    at: SourcePos,
    (value, style): (&str, QuoteStyle),
    (line, column): (usize, usize),
) -> SourcePos {
    let Some(wanted) = offset(value, line, column) else {
        return at;
    };
    let mut walk = Walk::begin(source, at, style);
    if matches!(style, QuoteStyle::Literal | QuoteStyle::Folded) {
        walk.indent = at.column;
    }
    let mut value = value.chars().peekable();
    // The parser positions a block scalar at its first nonempty line.
    let mut index = 0;
    while matches!(style, QuoteStyle::Literal | QuoteStyle::Folded) && walk.peek() != Some('\n') {
        if value.next_if_eq(&'\n').is_none() {
            break;
        }
        index += 1;
    }
    for (index, character) in (index..).zip(value) {
        walk.reach(character);
        if index == wanted {
            return walk.place;
        }
        if !walk.take(character) {
            return at;
        }
    }
    // The end of the text, where an incomplete template ends.
    walk.place
}

/// Returns the number of characters before `line` and `column`, or `None` if there is no such line.
fn offset(value: &str, line: usize, column: usize) -> Option<usize> {
    let before = line.checked_sub(1)?;
    let start: usize =
        value.split_inclusive('\n').take(before).map(|line| line.chars().count()).sum();
    (value.matches('\n').count() >= before).then(|| start + column.saturating_sub(1))
}

/// A position that moves along the file.
struct Walk<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    place: SourcePos,
    style: QuoteStyle,
    /// Column at which the lines of a block scalar start.
    indent: u32,
}

impl<'t> Walk<'t> {
    /// Creates a walk at the first character of the content, after anchor, tag, and quote.
    fn begin(source: &SourceText<'t>, at: SourcePos, style: QuoteStyle) -> Self {
        let mut walk =
            Self { rest: source.rest(at).chars().peekable(), place: at, style, indent: 1 };
        if matches!(style, QuoteStyle::Plain | QuoteStyle::Single | QuoteStyle::Double) {
            while matches!(walk.peek(), Some('&' | '!')) {
                while walk.peek().is_some_and(|character| !character.is_whitespace()) {
                    walk.step();
                }
                walk.skip_blank();
            }
        }
        if matches!(style, QuoteStyle::Single | QuoteStyle::Double) {
            walk.step();
        }
        walk
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied().map(|character| if character == '\r' { '\n' } else { character })
    }

    fn step(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        let broken = character == '\n' || character == '\r';
        if character == '\r' {
            self.rest.next_if_eq(&'\n');
        }
        if broken {
            self.place.line += 1;
            self.place.column = 1;
        } else {
            self.place.column += 1;
        }
        Some(if broken { '\n' } else { character })
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.step();
        }
    }

    /// Skips characters that are in the file but not in the text: indentation and folded line
    /// breaks.
    fn reach(&mut self, wanted: char) {
        if matches!(self.style, QuoteStyle::Literal | QuoteStyle::Folded) {
            while self.place.column < self.indent && self.peek() == Some(' ') {
                self.step();
            }
        }
        if !wanted.is_whitespace() {
            self.skip_blank();
        }
    }

    /// Consumes a character of the text. Returns `false` if the file does not match.
    fn take(&mut self, wanted: char) -> bool {
        match (self.style, self.peek()) {
            (QuoteStyle::Double, Some('\\')) => self.escape(wanted),
            (QuoteStyle::Single, Some('\'')) => {
                self.step();
                self.step() == Some('\'')
            }
            (_, Some(actual)) if actual == wanted => self.step().is_some(),
            // A folded line break is a space, and a blank line is a line break.
            (_, Some(actual)) if actual.is_whitespace() && wanted.is_whitespace() => {
                self.skip_blank();
                true
            }
            _ => false,
        }
    }

    fn escape(&mut self, wanted: char) -> bool {
        self.step();
        let digits = match self.step() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            // Line continuation without a space.
            Some('\n') => {
                self.skip_blank();
                return self.take(wanted);
            }
            Some(_) => 0,
            None => return false,
        };
        (0..digits).all(|_| self.step().is_some())
    }
}
