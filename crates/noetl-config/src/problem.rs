//! Origins of values, and problems with them.

use std::fmt;
use std::path::{Path, PathBuf};

/// Position in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub file: PathBuf,
    /// Line, from 1; 0 if the problem concerns the whole file.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// Returns the position of a problem that concerns the whole file.
    pub(crate) fn of_file(file: &Path) -> Self {
        Self { file: file.to_owned(), line: 0, column: 0 }
    }
}

/// Layer and place that gave a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(Position),
    /// Name of an environment variable.
    Variable(&'static str),
    /// Long name of a flag, without dashes.
    Flag(&'static str),
}

impl Origin {
    /// Returns the name of the layer.
    pub fn layer(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File(_) => "file",
            Self::Variable(_) => "environment",
            Self::Flag(_) => "flag",
        }
    }

    /// Returns the name under which the user set the value, for messages.
    pub fn name(&self, key: &str) -> String {
        match self {
            Self::Default => key.to_owned(),
            Self::File(position) => format!("{position}: {key}"),
            Self::Variable(name) => (*name).to_owned(),
            Self::Flag(long) => format!("--{long}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::File(position) => position.fmt(out),
            Self::Variable(name) => out.write_str(name),
            Self::Flag(long) => write!(out, "--{long}"),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A line break in a file name must not look like another message.
        let file = self.file.display().to_string().replace(char::is_control, "\u{fffd}");
        match self.line {
            0 => out.write_str(&file),
            line => write!(out, "{file}:{line}:{}", self.column),
        }
    }
}

/// Problem with a file or a value. Never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Position, if the problem is in a file.
    pub position: Option<Position>,
    pub message: String,
    pub hint: Option<String>,
    /// Whether a flag is wrong, and not a file or a variable.
    pub is_flag: bool,
}

impl Problem {
    pub(crate) fn in_file(position: Position, message: impl Into<String>) -> Self {
        Self { position: Some(position), message: message.into(), hint: None, is_flag: false }
    }

    /// Creates the problem of a value with this origin. The message begins with the value's name.
    pub(crate) fn with_value(origin: &Origin, key: &str, rest: &str) -> Self {
        match origin {
            Origin::File(position) => Self::in_file(position.clone(), format!("{key} {rest}")),
            origin => Self {
                position: None,
                message: format!("{} {rest}", origin.name(key)),
                hint: None,
                is_flag: matches!(origin, Origin::Flag(_)),
            },
        }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Some(position) => write!(out, "{position}: {}", self.message),
            None => out.write_str(&self.message),
        }
    }
}
