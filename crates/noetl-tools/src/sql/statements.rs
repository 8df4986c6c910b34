//! Splits SQL text into statements, and replaces named parameters with numbered ones.

use noetl_model::Failure;

use super::scan::{Dialect, Scanner, SqlToken};

/// A statement, without its semicolon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement<'a> {
    pub(crate) text: &'a str,
    /// Verb in lower case: the first word, or for `with` the word after the last common table
    /// expression.
    pub(crate) verb: String,
    /// Effect on the surrounding transaction.
    pub(crate) control: TransactionControl,
    /// Whether the statement reads or writes the client's stream (`copy … from stdin`).
    pub(crate) streams: bool,
}

/// Effect of a statement on the surrounding transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionControl {
    None,
    /// Begins a new transaction.
    Begin,
    /// Commits or rolls back the transaction.
    Finish,
    /// Creates, releases, or rolls back to a savepoint.
    Inner,
}

impl Statement<'_> {
    /// Returns `true` if the statement changes rows rather than queries them.
    pub(crate) fn changes_rows(&self) -> bool {
        matches!(self.verb.as_str(), "insert" | "update" | "delete" | "merge" | "replace")
    }
}

/// Splits a text into statements. Parts with only whitespace and comments are omitted.
pub(crate) fn split(text: &str, dialect: Dialect) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut piece = Piece::default();
    for (range, token) in Scanner::new(text, dialect) {
        if token == SqlToken::End && piece.bodies == 0 {
            statements.extend(piece.finish(text, range.start));
            piece = Piece::default();
        } else {
            piece.push(range.start, token, dialect);
        }
    }
    statements.extend(piece.finish(text, text.len()));
    statements
}

#[derive(Default)]
struct Piece {
    start: Option<usize>,
    /// First three words of the statement, in lower case.
    words: Vec<String>,
    /// Whether all tokens so far are words, so that `words` is the beginning of the statement.
    opening: bool,
    verb: Option<String>,
    parens: usize,
    /// Number of open routine or trigger bodies, which contain semicolons of their own.
    bodies: usize,
    is_trigger: bool,
    last: String,
    streams: bool,
}

impl Piece {
    fn push(&mut self, at: usize, token: SqlToken<'_>, dialect: Dialect) {
        if self.start.is_none() {
            self.start = Some(at);
            self.opening = true;
        }
        match token {
            SqlToken::Word(word) => self.word(word.to_ascii_lowercase(), dialect),
            other => {
                self.opening = false;
                match other {
                    SqlToken::Open => self.parens += 1,
                    SqlToken::Close => self.parens = self.parens.saturating_sub(1),
                    _ => {}
                }
                self.last.clear();
            }
        }
    }

    fn word(&mut self, word: String, dialect: Dialect) {
        if self.opening && self.words.len() < 3 {
            self.words.push(word.clone());
        }
        let first = self.words.first().map_or("", String::as_str);
        match first {
            "with" if self.parens == 0 => {
                let is_verb = matches!(
                    word.as_str(),
                    "select" | "insert" | "update" | "delete" | "merge" | "values" | "replace"
                );
                if is_verb && self.verb.is_none() {
                    self.verb = Some(word.clone());
                }
            }
            "create" => match word.as_str() {
                "trigger" => self.is_trigger = true,
                "begin" if self.is_trigger && dialect == Dialect::Sqlite => self.bodies += 1,
                "atomic" if self.last == "begin" => self.bodies += 1,
                "case" if self.bodies > 0 => self.bodies += 1,
                "end" => self.bodies = self.bodies.saturating_sub(1),
                _ => {}
            },
            "copy" => self.streams |= matches!(word.as_str(), "stdin" | "stdout"),
            _ => {}
        }
        self.last = word;
    }

    fn finish(self, text: &str, end: usize) -> Option<Statement<'_>> {
        let start = self.start?;
        let word = |place: usize| self.words.get(place).map_or("", String::as_str);
        let goes_back = word(1) == "to" || word(2) == "to";
        let control = match word(0) {
            "begin" | "start" => TransactionControl::Begin,
            "rollback" if goes_back => TransactionControl::Inner,
            "savepoint" | "release" => TransactionControl::Inner,
            "commit" | "end" | "rollback" | "abort" => TransactionControl::Finish,
            "prepare" if word(1) == "transaction" => TransactionControl::Finish,
            _ => TransactionControl::None,
        };
        let verb = self.verb.clone().unwrap_or_else(|| word(0).to_owned());
        let text = text[start..end].trim_end();
        Some(Statement { text, verb, control, streams: self.streams })
    }
}

/// Replaces each `:name` with `$1`, `$2`, … (or `?1`, …), and returns the names by number.
///
/// `takes` decides whether a name is a parameter; other text stays unchanged.
pub(crate) fn number_names(
    text: &str,
    dialect: Dialect,
    mut takes: impl FnMut(&str) -> Result<bool, Failure>,
) -> Result<(String, Vec<&str>), Failure> {
    let mut numbered = String::with_capacity(text.len());
    let mut names: Vec<&str> = Vec::new();
    let mut copied = 0;
    for (range, token) in Scanner::new(text, dialect) {
        let SqlToken::Name(name) = token else { continue };
        if !takes(name)? {
            continue;
        }
        let number = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        numbered.push_str(&text[copied..range.start]);
        numbered.push(if dialect == Dialect::Sqlite { '?' } else { '$' });
        numbered.push_str(&(number + 1).to_string());
        copied = range.end;
    }
    numbered.push_str(&text[copied..]);
    Ok((numbered, names))
}

/// Quotes the name of a table or column. If `dotted`, dots separate a schema from a table.
pub(crate) fn quoted(name: &str, dotted: bool) -> String {
    let quote = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    match dotted {
        true => name.split('.').map(quote).collect::<Vec<_>>().join("."),
        false => quote(name),
    }
}

#[cfg(test)]
mod tests;
