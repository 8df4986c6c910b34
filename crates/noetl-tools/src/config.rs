//! Parses a tool's settings from JSON. Errors name the invalid key and the expected value.

use std::time::Duration;

use noetl_model::{Failure, FailureKind, Map, Value};

use crate::ToolCall;

/// Maximum timeout of a playbook. A longer one is likely a mistyped unit, and would overflow
/// clocks.
const TIMEOUT_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

impl ToolCall {
    /// Returns the timeout of this call: the caller's, or else its own `timeout` setting.
    pub(crate) fn time_limit(&self) -> Result<Option<Duration>, Failure> {
        if self.timeout.is_some() {
            return Ok(self.timeout);
        }
        match first(&self.config, &["timeout", "timeout_seconds"]) {
            None => Ok(None),
            Some((key, value)) => duration(key, value).map(Some),
        }
    }

    /// Runs the work of this call until it completes, is cancelled, or times out. `default` applies
    /// if no timeout is set. Dropping the future of `work` must stop the work.
    pub(crate) async fn run_within<T>(
        &self,
        default: Duration,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limit = self.time_limit()?.unwrap_or(default);
        tokio::select! {
            done = work => done,
            () = self.cancel.cancelled() => Err(self.cancelled()),
            () = expiry(Some(limit)) => Err(self.timed_out(limit)),
        }
    }

    /// Creates the failure of a cancelled call.
    pub(crate) fn cancelled(&self) -> Failure {
        Failure::new(FailureKind::Cancelled, format!("step '{}' was cancelled", self.step))
    }

    /// Creates the failure of a call that exceeded `limit`.
    pub(crate) fn timed_out(&self, limit: Duration) -> Failure {
        Failure::new(
            FailureKind::Timeout,
            format!("step '{}' took longer than its limit of {limit:?}", self.step),
        )
    }
}

/// Waits for `limit`, or forever without one.
pub(crate) async fn expiry(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Config, message)
}

/// Returns the first of `keys` whose value is not null, with its value.
pub(crate) fn first<'a>(config: &'a Map, keys: &[&'a str]) -> Option<(&'a str, &'a Value)> {
    keys.iter().find_map(|key| match config.get(*key) {
        None | Some(Value::Null) => None,
        Some(value) => Some((*key, value)),
    })
}

/// Returns a map setting. Absent and null are `None`.
pub(crate) fn map<'a>(config: &'a Map, key: &str) -> Result<Option<&'a Map>, Failure> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(other) => Err(wrong(format!("`{key}` must be a map, not {}", type_name(other)))),
    }
}

/// Returns a text setting. Absent and null are `None`.
pub(crate) fn text<'a>(config: &'a Map, key: &str) -> Result<Option<&'a str>, Failure> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(format!("`{key}` must be a text, not {}", type_name(other)))),
    }
}

/// Returns the environment variables in `env`. A null value omits its variable.
pub(crate) fn environment(config: &Map) -> Result<Vec<(&str, String)>, Failure> {
    let mut variables = Vec::new();
    for (name, value) in map(config, "env")?.into_iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(wrong(format!("`env`: '{name}' cannot name an environment variable")));
        }
        if !value.is_null() {
            let value = plain(value);
            if value.contains('\0') {
                return Err(wrong(format!("`env.{name}` holds a NUL character")));
            }
            variables.push((name.as_str(), value));
        }
    }
    Ok(variables)
}

/// Returns a value as plain text: strings unchanged, other values as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the type of a value, for messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Parses a duration: seconds as a number or text, or a text with the unit `ms`, `s`, `m`, or `h`.
fn duration(key: &str, value: &Value) -> Result<Duration, Failure> {
    let refused = || {
        wrong(format!(
            "`{key}` must be a positive number of seconds or a text such as \"30s\" or \"5m\", \
             not {value}"
        ))
    };
    let seconds = match value {
        Value::Number(number) => number.as_f64().ok_or_else(refused)?,
        Value::String(text) => {
            let text = text.trim();
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let unit = match &text[digits.len()..] {
                "ms" => 0.001,
                "" | "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(refused()),
            };
            digits.trim().parse::<f64>().map_err(|_| refused())? * unit
        }
        _ => return Err(refused()),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit.min(TIMEOUT_MAX)),
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_have_units() {
        let read = |value| duration("timeout", &value).map_err(|failure| failure.message);
        assert_eq!(read(json!(1.5)), Ok(Duration::from_millis(1500)));
        assert_eq!(read(json!("30")), Ok(Duration::from_secs(30)));
        assert_eq!(read(json!("250ms")), Ok(Duration::from_millis(250)));
        assert_eq!(read(json!("5 m")), Ok(Duration::from_secs(300)));
        assert_eq!(read(json!(1e300)).ok(), None);
        for bad in [json!(0), json!(-1), json!("soon"), json!("5d"), json!(true), json!("NaN")] {
            assert!(read(bad).is_err());
        }
    }
}
