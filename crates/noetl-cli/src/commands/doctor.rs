//! `noetl doctor`: checks the server, the access token, and this machine.

mod local;

use std::process::ExitCode;

use noetl_api::health::Health;
use noetl_api::{Response, calls};
use noetl_config::tree::Database;
use noetl_model::{Clock as _, Timestamp};
use noetl_store::SystemClock;
use serde_json::{Value, json};

use crate::arguments::DoctorArguments;
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::style::{TextStyle, one_line};
use crate::output::table::Tone;
use crate::remote::{self, Remote};
use crate::settings;

/// Maximum clock difference in seconds. A larger one makes times in logs and tokens misleading.
///
/// HTTP dates have a resolution of one second, and the response takes some time.
const APART_MAX: u64 = 5;

/// Exit code if a check failed.
const WRONG: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Ok,
    /// Works, but needs attention.
    Warning,
    Bad,
    /// The check could not run.
    Skipped,
}

impl CheckState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Bad => "bad",
            Self::Skipped => "skipped",
        }
    }
}

/// A completed check with its outcome.
#[derive(Debug)]
struct Check {
    name: &'static str,
    state: CheckState,
    message: String,
    hint: Option<String>,
}

impl Check {
    fn new(name: &'static str, state: CheckState, message: impl Into<String>) -> Self {
        Self { name, state, message: message.into(), hint: None }
    }

    fn failed(name: &'static str, failure: &CliError) -> Self {
        let check = Self::new(name, CheckState::Bad, failure.text());
        Self { hint: failure.hint_text().map(str::to_owned), ..check }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

pub(crate) fn main(arguments: &DoctorArguments) -> Result<ExitCode, CliError> {
    let settings = arguments.database.settings();
    let data = settings::decode::<Database>(&settings)?.data;
    remote::run(&arguments.remote, async |remote| {
        let mut checks = of_server(&remote).await;
        checks.extend(local::checks(&data).await);
        let is_well = checks.iter().all(|check| check.state != CheckState::Bad);
        show(remote.form, &body(&checks, is_well), |style| text(&checks, style))?;
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
    })
}

async fn of_server(remote: &Remote) -> Vec<Check> {
    let health = match remote.ask(calls::health()).await {
        Ok(health) => health,
        Err(failure) => {
            let mut checks = vec![Check::failed("server", &failure)];
            for name in ["store", "bus", "token", "clock"] {
                checks.push(Check::new(name, CheckState::Skipped, "the server was not reached"));
            }
            return checks;
        }
    };
    let mut checks = vec![server(remote, &health.value), store(&health.value), bus(&health.value)];
    checks.push(token(remote).await);
    checks.push(clock(&health));
    checks
}

fn server(remote: &Remote, health: &Health) -> Check {
    let base = remote.client.address();
    let (version, up) = (&health.version, health.uptime_seconds);
    let origin = &remote.origin;
    let message = format!("{base} ({origin}) is version {version}, up for {up} s");
    let own = env!("CARGO_PKG_VERSION");
    if version == own {
        return Check::new("server", CheckState::Ok, message);
    }
    let hint = format!("this program is version {own}; what one of them lacks will not work");
    Check::new("server", CheckState::Warning, message).hint(hint)
}

fn store(health: &Health) -> Check {
    match health.database.as_str() {
        "connected" => Check::new("store", CheckState::Ok, "connected"),
        other => Check::new("store", CheckState::Bad, other)
            .hint("the server recovers by itself once its database is available"),
    }
}

fn bus(health: &Health) -> Check {
    match health.nats.as_str() {
        "connected" => Check::new("bus", CheckState::Ok, "connected"),
        "not_configured" => Check::new("bus", CheckState::Ok, "none is named, and none is needed"),
        other => Check::new("bus", CheckState::Warning, other)
            .hint("executions go on; events are published when NATS is back"),
    }
}

async fn token(remote: &Remote) -> Check {
    match remote.ask(calls::whoami()).await {
        Ok(answer) => {
            let who = answer.value;
            let shown = if remote.has_token { "" } else { "no token is shown; " };
            let roles = who.roles.join(", ");
            let message =
                format!("{shown}known as {}, tenant {}, roles: {roles}", who.name, who.tenant);
            Check::new("token", CheckState::Ok, message)
        }
        Err(failure) => Check::failed("token", &failure),
    }
}

fn clock(health: &Response<Health>) -> Check {
    let date = health.date.as_deref().and_then(http_date);
    let Some(date) = date else {
        return Check::new("clock", CheckState::Skipped, "the server did not tell its time");
    };
    let now = SystemClock.now();
    let apart = now.since(date).max(date.since(now)).as_secs();
    if apart <= APART_MAX {
        return Check::new("clock", CheckState::Ok, "as the server's");
    }
    let which = if now > date { "ahead of" } else { "behind" };
    let message = format!("this machine's clock is {apart} s {which} the server's");
    Check::new("clock", CheckState::Warning, message).hint("let both follow a time server")
}

/// Parses an HTTP date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split(' ').skip(1);
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    format!("{year}-{month:02}-{day}T{time}Z").parse().ok()
}

fn body(checks: &[Check], is_well: bool) -> Value {
    let shown = checks.iter().map(|Check { name, state, message, hint }| {
        json!({"name": name, "state": state.as_str(), "message": message, "hint": hint})
    });
    json!({"ok": is_well, "checks": shown.collect::<Vec<_>>()})
}

fn text(checks: &[Check], style: TextStyle) -> String {
    let mut text = String::new();
    for Check { name, state, message, hint } in checks {
        let tone = match state {
            CheckState::Skipped => Tone::Faint,
            CheckState::Ok | CheckState::Warning | CheckState::Bad => {
                Tone::of_status(state.as_str())
            }
        };
        let state = tone.paint(style, &format!("{:<8}", state.as_str()));
        text.push_str(&format!("{state} {name:<7} {}\n", one_line(message)));
        if let Some(hint) = hint {
            text.push_str(&format!("{:17}{}: {hint}\n", "", style.faint("help")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_header_of_a_response_is_parsed() {
        let read = |text: &str| http_date(text).map(|at| at.to_string());
        let expected: Timestamp = "1994-11-06T08:49:37Z".parse().expect("a time");
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(expected));
        for text in ["", "now", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn clock_skew_is_reported() {
        let health = Health {
            status: "ok".into(),
            database: "connected".into(),
            nats: "disconnected".into(),
            uptime_seconds: 1,
            version: "0".into(),
            message: String::new(),
            timestamp: None,
        };
        let answer = |date: Option<&str>| Response {
            value: health.clone(),
            body: Value::Null,
            date: date.map(str::to_owned),
        };
        let old = clock(&answer(Some("Sun, 06 Nov 1994 08:49:37 GMT")));
        assert_eq!(old.state, CheckState::Warning);
        assert!(old.message.contains("ahead of"), "{}", old.message);
        assert_eq!(clock(&answer(None)).state, CheckState::Skipped);
        assert_eq!(
            (store(&health).state, bus(&health).state),
            (CheckState::Ok, CheckState::Warning)
        );
    }
}
