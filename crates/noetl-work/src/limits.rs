//! Limits that the control plane and its workers agree on.

/// Maximum number of commands in one lease request or renewal.
pub const LEASE_BATCH_MAX: usize = 1000;

/// Maximum number of step log lines in one report.
pub const STEP_LOG_LINES_MAX: usize = 1000;

/// Maximum length of a name of a credential, variable, or stored result, in characters.
pub const NAME_MAX: usize = 500;
