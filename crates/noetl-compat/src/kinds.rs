//! Tool kinds that published workers know.

/// Tool kinds that published workers support, among those a playbook can name.
pub(crate) const KINDS: [&str; 8] =
    ["noop", "shell", "http", "python", "postgres", "duckdb", "nats", "artifact"];

/// Tool kind of a pipeline of tasks.
pub(crate) const PIPELINE: &str = "task_sequence";
