//! Why a step did not succeed, in a form that policies can match on and people can read.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Map, Value};

/// What went wrong, said once and kept in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class a policy or a person decides by.
    pub kind: FailureKind,
    /// One sentence for people: what failed and what would help.
    pub message: String,
    /// Whether the same call may succeed later without a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// What the tool knows beyond the sentence: HTTP status and body, traceback, exit code. Boxed,
    /// since results carry a failure by value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
}

impl Failure {
    /// A failure of `kind`, retryable when its kind usually is.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let retryable = kind.is_usually_retryable();
        Self { kind, message: message.into(), retryable, details: None }
    }

    /// The same failure with what the tool knows beyond its sentence.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The same failure with one more thing known of it; details that are no map are kept as
    /// `details` beside it.
    #[must_use]
    pub fn with_detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        let mut details = match self.details.take().map(|details| *details) {
            Some(Value::Object(details)) => details,
            Some(other) => Map::from_iter([("details".to_owned(), other)]),
            None => Map::new(),
        };
        details.insert(key.to_owned(), value.into());
        self.with_details(Value::Object(details))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// The class of a failure. Playbooks compare with its text (`output.error.kind`).
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum FailureKind {
            $($(#[$doc])* $variant,)+
            /// A kind said by a worker that this version does not know.
            Other(String),
        }

        impl FailureKind {
            /// The text playbooks compare with.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<String> for FailureKind {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)+
                    _ => Self::Other(text),
                }
            }
        }
    };
}

kinds! {
    /// Refused credentials or a missing permission.
    Auth = "auth",
    /// Told to stop.
    Cancelled = "cancelled",
    /// The playbook a step called did not complete.
    ChildFailed = "child_failed",
    /// The far side says the request is wrong.
    ClientError = "client_error",
    /// The tool's own settings are wrong.
    Config = "config",
    /// The far side could not be reached.
    Connection = "connection",
    /// Data that a rule of the database forbids.
    DbConstraint = "db_constraint",
    /// Two transactions in each other's way.
    DbDeadlock = "db_deadlock",
    /// A program ended with a code other than 0.
    ExitCode = "exit_code",
    /// The far side has no such thing.
    NotFound = "not_found",
    /// More output than a step may keep.
    OutputLimit = "output_limit",
    /// Text that is not in the format it should be in.
    Parse = "parse",
    /// Asked to slow down.
    RateLimit = "rate_limit",
    /// A value of the wrong type or a missing key.
    Schema = "schema",
    /// The far side failed.
    ServerError = "server_error",
    /// A template could not be rendered.
    TemplateError = "template_error",
    /// Took longer than allowed.
    Timeout = "timeout",
    /// No tool of that kind, or what it needs is not installed.
    ToolMissing = "tool_missing",
    Unknown = "unknown",
    /// The worker that ran it went away, too often.
    WorkerLost = "worker_lost",
}

impl FailureKind {
    fn is_usually_retryable(&self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::DbDeadlock
                | Self::RateLimit
                | Self::ServerError
                | Self::Timeout
        )
    }
}

impl From<FailureKind> for String {
    fn from(kind: FailureKind) -> Self {
        kind.as_str().to_owned()
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
