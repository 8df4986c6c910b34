//! Why a command could not do its work: a sentence, its causes, a hint, an exit code.

use std::error::Error;
use std::process::ExitCode;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The playbook or the call is wrong.
    User,
    /// The surroundings are: a file, a port, a disk.
    Config,
    /// A defect of ours.
    Internal,
}

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// A failure that says what `error` and its sources say.
    pub(crate) fn from_error(kind: Kind, error: &dyn Error) -> Self {
        let mut failure = Self::new(kind, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure.causes.push(cause.to_string());
            source = cause.source();
        }
        failure
    }

    /// The same failure, saying what it is about.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same failure with what would help.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::User => 2,
            Kind::Config => 3,
            Kind::Internal => 70,
        })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The sentence and its causes on one line.
    pub(crate) fn text(&self) -> String {
        let mut parts = vec![self.message.as_str()];
        parts.extend(self.causes.iter().map(String::as_str));
        parts.join(": ")
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
