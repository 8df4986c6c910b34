//! Settings of this process: configuration files and environment, read once. Verbs put their flags
//! on top.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use noetl_config::{Files, Lookup, Options, Problem, Section, Settings};

use crate::error::{CliError, ErrorKind};
use crate::output;

/// Variable that names the only configuration file.
pub(crate) const CONFIG: &str = "NOETL_CONFIG";

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Whether a process starts without a configuration file that it must not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnreadableFiles {
    /// Start, with a warning.
    Ignored,
    /// Don't start: the file may configure authentication, egress, or isolation.
    Rejected,
}

/// Reads the configuration files and the environment. `file` is the value of `--config`.
pub(crate) fn load(file: Option<&Path>, unreadable: UnreadableFiles) -> Result<(), CliError> {
    let mut files = lookup(file).read(uid());
    if unreadable == UnreadableFiles::Rejected
        && let Some(problem) = files.unreadable.first()
    {
        return Err(failure(vec![problem.clone()]).hint(
            "give the user of this process the right to read it, or name another file with \
             --config or NOETL_CONFIG",
        ));
    }
    files.warnings.extend(unreadable_warnings(&files));
    let Files { layers, problems, warnings, .. } = files;
    warn(&warnings);
    if !problems.is_empty() {
        return Err(failure(problems));
    }
    let settings = Settings::new(layers, std::env::vars_os());
    warn(&unknown_variables(&settings));
    set(settings);
    Ok(())
}

/// Returns warnings about files that are ignored because this process must not read them.
pub(crate) fn unreadable_warnings(files: &Files) -> Vec<String> {
    let ignored = files.unreadable.iter().map(|problem| format!("ignored {problem}"));
    ignored.collect()
}

/// Makes these the settings of the process. Only verbs do, before anything reads a setting.
pub(crate) fn set(settings: Settings) {
    let _ = SETTINGS.set(settings);
}

/// Returns the files that apply: the given one, else that of the environment, else the usual ones.
pub(crate) fn lookup(file: Option<&Path>) -> Lookup {
    let named = file.map(Path::to_owned).or_else(|| path(CONFIG));
    match named {
        Some(file) => Lookup::Named(file),
        None => Lookup::usual(path("HOME").as_deref(), path("XDG_CONFIG_HOME").as_deref()),
    }
}

/// Returns the settings without flags. Without [`load`], as in unit tests, those of the environment.
pub(crate) fn current() -> &'static Settings {
    SETTINGS.get_or_init(|| Settings::new(Vec::new(), std::env::vars_os()))
}

/// Decodes a section without flags.
pub(crate) fn section<S: Section>() -> Result<S, CliError> {
    decode(current())
}

/// Decodes a section of these settings.
pub(crate) fn decode<S: Section>(settings: &Settings) -> Result<S, CliError> {
    settings.section().map_err(failure)
}

/// Returns warnings about variables that look like settings.
pub(crate) fn unknown_variables(settings: &Settings) -> Vec<String> {
    let lists = ["executions.template_env", "steps.env"];
    let passed_on = lists.iter().flat_map(|key| settings.items_of(key));
    let passed_on: Vec<String> = passed_on.map(|(name, _)| name).collect();
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    noetl_config::unknown_variables(names.iter().map(AsRef::as_ref), &passed_on)
}

/// Converts problems to a failure: the first one, with the number of all.
pub(crate) fn failure(problems: Vec<Problem>) -> CliError {
    let count = problems.len();
    let Some(first) = problems.into_iter().next() else {
        return CliError::new(ErrorKind::Internal, "a section of the settings can't be decoded");
    };
    let kind = if first.is_flag { ErrorKind::User } else { ErrorKind::Config };
    let failure = CliError::new(kind, first.to_string());
    let all = (count > 1).then(|| format!("`noetl config check` shows all {count} problems"));
    match (first.hint, all) {
        (Some(hint), Some(all)) => failure.hint(format!("{hint} {all}")),
        (Some(hint), None) | (None, Some(hint)) => failure.hint(hint),
        (None, None) => failure,
    }
}

/// Returns the user ID that configuration files may belong to.
pub(crate) fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns a variable of the system that is no setting, such as `HOME`. An empty value counts as
/// unset.
#[expect(clippy::disallowed_methods, reason = "the one place that reads variables by name")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns all environment variables with a name and value in UTF-8.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Returns the variables of the settings with these keys, highest precedence first.
pub(crate) fn variables_of(keys: &[&str]) -> Vec<&'static str> {
    let settings = keys.iter().filter_map(|key| Options::setting(key));
    settings.flat_map(|setting| setting.variables).copied().collect()
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        output::note(&format!("warning: {}", output::escape::escaped(warning)));
    }
}

#[cfg(test)]
mod tests {
    use noetl_control::Options as ControlOptions;
    use noetl_egress::DefaultAccess;
    use noetl_publishing::PublisherOptions;
    use noetl_store::OutboxOptions;
    use noetl_store_postgres::Options as PostgresOptions;

    use super::*;

    /// Settings have their own defaults, which the reference shows.
    #[test]
    fn defaults_are_those_of_the_components() {
        let options = Settings::default().options().unwrap();
        let (limits, server) = (options.limits, noetl_server::Options::default());
        let rate = |rate: u64| (rate > 0).then_some(rate as f64);
        assert_eq!(limits.requests_max, server.requests_max);
        assert_eq!(limits.anonymous_requests_max, server.anonymous_max);
        assert_eq!(limits.request_timeout_secs, server.request_timeout);
        assert_eq!(limits.body_timeout_secs, server.body_timeout);
        assert_eq!(limits.body_min_rate, server.body_min_rate);
        assert_eq!(limits.streams_max, server.streams_max);
        assert_eq!(limits.tenant_streams_max, server.tenant_streams_max);
        assert_eq!(limits.connections_max, server.connections_max);
        assert_eq!(rate(limits.rate_limit), server.rate_limit);
        assert_eq!(rate(limits.address_rate_limit), server.address_rate_limit);
        assert_eq!(rate(limits.listener_rate_limit), server.listener_rate_limit);

        let (executions, control) = (options.executions, ControlOptions::default());
        assert_eq!(executions.loop_items_max, control.caps.loop_items);
        assert_eq!(executions.loop_in_flight, control.caps.in_flight);
        assert_eq!(executions.playbook_depth_max, control.caps.depth);
        assert_eq!(executions.events_max, control.caps.events);
        assert_eq!(executions.worker_lease_secs, control.worker_lease);
        assert_eq!(executions.lost_report_secs, control.lost_reports);
        assert_eq!(executions.webhook_replay_secs, control.replay_window);
        assert_eq!(control.lease.as_secs(), 90, "as the reference says");
        assert_eq!(noetl_sources::Options::new("").lease.as_secs(), 30, "as the reference says");

        let (bus, publisher) = (options.bus, PublisherOptions::default());
        assert_eq!(bus.event_stream_batch, publisher.batch);
        assert_eq!(bus.event_stream_poll_ms, publisher.poll);
        assert_eq!(bus.event_stream_retention_secs, publisher.age_max);
        assert_eq!(bus.event_stream_lease_secs, publisher.lease);
        assert_eq!(publisher.duplicate_window.as_secs(), 120, "as the reference says");
        assert_eq!(bus.outbox_lease_secs, OutboxOptions::default().lease);

        let (traces, exporter) = (options.traces, noetl_otlp::ExporterSettings::new(""));
        assert_eq!(traces.timeout_ms, exporter.timeout);
        assert_eq!((traces.queue, traces.batch), (exporter.queue, exporter.batch));
        assert_eq!(traces.delay_ms, exporter.delay);

        let database = options.database;
        assert_eq!(database.max_connections, PostgresOptions::CONNECTIONS);
        assert_eq!(database.statement_cache_capacity, PostgresOptions::STATEMENTS);
        assert_eq!(options.steps.python, noetl_tools::Options::default().python);
        let named = DefaultAccess::NAMES.iter().find(|(name, _)| *name == options.egress.fence);
        assert_eq!(named.map(|(_, access)| *access), Some(DefaultAccess::default()));
    }

    #[test]
    fn the_error_shows_the_first_problem_and_the_number_of_problems() {
        let variables = [("NOETL_PORT", "x"), ("NOETL_HOST", "y")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let settings = Settings::new(Vec::new(), variables);
        let failure = decode::<noetl_config::tree::Server>(&settings).unwrap_err();
        assert_eq!(failure.text(), "NOETL_HOST is an IP address, not 'y'");
        assert_eq!(failure.hint_text(), Some("`noetl config check` shows all 2 problems"));
    }
}
