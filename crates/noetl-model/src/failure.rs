//! Failures of steps, in a form that policies can match and people can read.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Map, Value};

/// A failure, as recorded in the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Class of the failure, which policies match on.
    pub kind: FailureKind,
    /// Single sentence for people: the problem and the remedy.
    pub message: String,
    /// Whether the same call may succeed later without a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// Structured details from the tool: HTTP status and body, traceback, exit code. Boxed, because
    /// results carry failures by value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
}

impl Failure {
    /// Creates a failure of `kind`. Marks it as retryable if failures of that kind usually are.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let retryable = kind.is_usually_retryable();
        Self { kind, message: message.into(), retryable, details: None }
    }

    /// Sets the details, replacing earlier ones.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Adds an entry to the details. Details that are not an object move under the key `details`.
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
        /// Class of a failure. Playbooks compare its text (`output.error.kind`).
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum FailureKind {
            $($(#[$doc])* $variant,)+
            /// A kind that a worker reported and this version does not know.
            Other(String),
        }

        impl FailureKind {
            /// Returns the text that playbooks compare.
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
    /// Rejected credentials or a missing permission.
    Auth = "auth",
    /// The tool was cancelled.
    Cancelled = "cancelled",
    /// A playbook that the step called did not succeed.
    ChildFailed = "child_failed",
    /// The remote service rejected the request as invalid.
    ClientError = "client_error",
    /// The tool's configuration is invalid.
    Config = "config",
    /// The remote service was unreachable.
    Connection = "connection",
    /// Data violates a constraint of the database.
    DbConstraint = "db_constraint",
    /// Transactions deadlocked or conflicted.
    DbDeadlock = "db_deadlock",
    /// A process exited with a nonzero code.
    ExitCode = "exit_code",
    /// The remote service does not have the requested object.
    NotFound = "not_found",
    /// Output exceeds the limit of a step.
    OutputLimit = "output_limit",
    /// Text is not in the expected format.
    Parse = "parse",
    /// The remote service limits the request rate.
    RateLimit = "rate_limit",
    /// A value has the wrong type, or a key is missing.
    Schema = "schema",
    /// The remote service failed.
    ServerError = "server_error",
    /// A template failed to render.
    TemplateError = "template_error",
    /// The time limit was exceeded.
    Timeout = "timeout",
    /// The tool kind is unknown, or a program it requires is not installed.
    ToolMissing = "tool_missing",
    Unknown = "unknown",
    /// The worker was lost in every permitted attempt.
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
