//! Error of a command: a message with its causes, a hint, and an exit code.

use std::error::Error;
use std::process::ExitCode;

/// Category of an error. Determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The playbook or the arguments are invalid.
    User,
    /// The environment is at fault, such as a file, a port, or a full disk.
    Config,
    /// A bug in this program.
    Internal,
}

/// Error that ended a command.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: ErrorKind,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl CliError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// Converts an error and its sources to a failure.
    pub(crate) fn from_error(kind: ErrorKind, error: &dyn Error) -> Self {
        let mut failure = Self::new(kind, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure.causes.push(cause.to_string());
            source = cause.source();
        }
        failure
    }

    /// Prefixes the message with its subject.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Adds a hint that tells the user how to fix the problem.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            ErrorKind::User => 2,
            ErrorKind::Config => 3,
            ErrorKind::Internal => 70,
        })
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message and its causes on one line.
    pub(crate) fn text(&self) -> String {
        let mut parts = vec![self.message.as_str()];
        parts.extend(self.causes.iter().map(String::as_str));
        parts.join(": ")
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
