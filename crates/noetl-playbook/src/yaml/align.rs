//! From a position inside a text to its position in the file.
//!
//! A text is not always a slice of the file: quotes are escaped, block scalars lose their
//! indentation, folded ones their line breaks. [`locate`] walks both side by side; where they part
//! in a way it does not expect it answers with the beginning of the text, which is never wrong.

use super::node::{Place, Style};
use super::source::Source;

/// Where the character at `line` and `column` (from 1) of a text stands in the file.
pub(crate) fn locate(
    source: &Source<'_>,
    at: Place,
    (value, style): (&str, Style),
    (line, column): (usize, usize),
) -> Place {
    let Some(wanted) = offset(value, line, column) else {
        return at;
    };
    let mut walk = Walk::begin(source, at, style);
    if matches!(style, Style::Literal | Style::Folded) {
        walk.indent = at.column;
    }
    let mut value = value.chars().peekable();
    // The parser places a block scalar at its first line that is not empty.
    let mut index = 0;
    while matches!(style, Style::Literal | Style::Folded) && walk.peek() != Some('\n') {
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
    // The very end of the text: a template that is cut short ends here.
    walk.place
}

/// Characters before `line` and `column`; none when the text has no such line.
fn offset(value: &str, line: usize, column: usize) -> Option<usize> {
    let before = line.checked_sub(1)?;
    let start: usize =
        value.split_inclusive('\n').take(before).map(|line| line.chars().count()).sum();
    (value.matches('\n').count() >= before).then(|| start + column.saturating_sub(1))
}

/// A walk along the file.
struct Walk<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    place: Place,
    style: Style,
    /// Column at which the lines of a block scalar begin.
    indent: u32,
}

impl<'t> Walk<'t> {
    /// Stands at the first character of the content, behind anchor, tag and quote.
    fn begin(source: &Source<'t>, at: Place, style: Style) -> Self {
        let mut walk =
            Self { rest: source.rest(at).chars().peekable(), place: at, style, indent: 1 };
        if matches!(style, Style::Plain | Style::Single | Style::Double) {
            while matches!(walk.peek(), Some('&' | '!')) {
                while walk.peek().is_some_and(|character| !character.is_whitespace()) {
                    walk.step();
                }
                walk.skip_blank();
            }
        }
        if matches!(style, Style::Single | Style::Double) {
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

    /// Skips what stands in the file but not in the text: indentation, folded breaks.
    fn reach(&mut self, wanted: char) {
        if matches!(self.style, Style::Literal | Style::Folded) {
            while self.place.column < self.indent && self.peek() == Some(' ') {
                self.step();
            }
        }
        if !wanted.is_whitespace() {
            self.skip_blank();
        }
    }

    /// Takes one character of the text; false when the file says something else.
    fn take(&mut self, wanted: char) -> bool {
        match (self.style, self.peek()) {
            (Style::Double, Some('\\')) => self.escape(wanted),
            (Style::Single, Some('\'')) => {
                self.step();
                self.step() == Some('\'')
            }
            (_, Some(found)) if found == wanted => self.step().is_some(),
            // A folded break is a space, a blank line a break.
            (_, Some(found)) if found.is_whitespace() && wanted.is_whitespace() => {
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
            // A line continued without a space in between.
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
