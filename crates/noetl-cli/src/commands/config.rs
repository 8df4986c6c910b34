//! `noetl config`: shows the effective settings, and reports all problems.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use noetl_config::tree::{Auth, Executions, Server, Steps};
use noetl_config::{Effective, Files, Lookup, Origin, Position, Problem, Settings};
use serde_json::{Value, json};

use super::worker;
use crate::arguments::{CheckConfigArguments, ConfigCommand, Output, ShowConfigArguments};
use crate::bus::BusSetup;
use crate::error::CliError;
use crate::output::{self, escape};
use crate::settings::{self, UnreadableFiles, section};
use crate::stores::StoreLocation;
use crate::traces::TraceExport;
use crate::{egress, http_options, isolation, keys, notifications, policy, results, runtime};

/// Exit code if there is a problem.
const WRONG: u8 = 2;

/// Runs the verb. `file` is the value of `--config`.
pub(crate) fn main(command: &ConfigCommand, file: Option<&Path>) -> Result<ExitCode, CliError> {
    match command {
        ConfigCommand::Show(arguments) => show(arguments, file),
        ConfigCommand::Check(arguments) => check(arguments, file),
    }
}

fn show(arguments: &ShowConfigArguments, file: Option<&Path>) -> Result<ExitCode, CliError> {
    settings::load(file, UnreadableFiles::Ignored)?;
    let effective = settings::current().effective().map_err(settings::failure)?;
    if arguments.output == Output::Json {
        let settings: Vec<Value> = effective.iter().map(document).collect();
        output::json(&json!(settings))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for Effective { setting, shown, origin } in &effective {
        let Some(shown) = shown else { continue };
        let shown = shown.replace(char::is_control, "\u{fffd}");
        match arguments.origin {
            true => text.push_str(&format!("{} = {shown}  ({origin})\n", setting.key)),
            false => text.push_str(&format!("{} = {shown}\n", setting.key)),
        }
    }
    output::shown(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a setting as JSON, with its origin.
fn document(effective: &Effective) -> Value {
    let Effective { setting, shown, origin } = effective;
    let place = match origin {
        Origin::Default => json!({}),
        Origin::File(position) => position_json(position),
        Origin::Variable(name) => json!({ "variable": name }),
        Origin::Flag(long) => json!({ "flag": format!("--{long}") }),
    };
    let mut document = json!({
        "key": setting.key,
        "value": shown,
        "default": setting.default_text(),
        "secret": setting.is_secret(),
        "layer": origin.layer(),
    });
    if let (Some(document), Value::Object(place)) = (document.as_object_mut(), place) {
        document.extend(place);
    }
    document
}

fn position_json(position: &Position) -> Value {
    let file = position.file.display().to_string();
    json!({ "file": file, "line": position.line, "column": position.column })
}

fn check(arguments: &CheckConfigArguments, file: Option<&Path>) -> Result<ExitCode, CliError> {
    let lookup = match &arguments.file {
        Some(file) => Lookup::Named(file.clone()),
        None => settings::lookup(file),
    };
    let files = lookup.read(settings::uid());
    let unreadable = settings::unreadable_warnings(&files);
    let Files { layers, mut problems, mut warnings, .. } = files;
    warnings.extend(unreadable);
    let files: Vec<PathBuf> = layers.iter().map(|layer| layer.path.clone()).collect();
    // The check of a named file doesn't depend on the environment.
    let settings = match arguments.file {
        Some(_) => Settings::new(layers, []),
        None => Settings::new(layers, std::env::vars_os()),
    };
    if arguments.file.is_none() {
        warnings.extend(settings::unknown_variables(&settings));
    }
    problems.extend(settings.options().err().unwrap_or_default());
    settings::set(settings);
    for failure in failures() {
        // A section that can't be decoded has been reported.
        let message = failure.text();
        if !problems.iter().any(|known| known.to_string() == message) {
            let hint = failure.hint_text().map(str::to_owned);
            problems.push(Problem { position: None, message, hint, is_flag: false });
        }
    }
    report(arguments.output, &files, &problems, &warnings)?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
}

/// Returns the failures of settings with a syntax of their own, and of contradictory settings.
fn failures() -> Vec<CliError> {
    let settings = settings::current();
    let executions = || section::<Executions>();
    let server = || section::<Server>();
    let oidc = || match section::<Auth>()? {
        auth if auth.mode.as_deref() == Some("oidc") => http_options::oidc(&auth).map(drop),
        _ => Ok(()),
    };
    let steps = || {
        let steps: Steps = section()?;
        isolation::isolate(&mut noetl_tools::Options::default(), &steps)
    };
    let traces = || {
        let export = TraceExport::configured(settings)?;
        export.settings().and(export.sampler()).map(drop)
    };
    let checks = [
        server().and_then(|server| http_options::cors_origins(&server)).map(drop),
        server().and_then(|server| http_options::proxies(&server)).map(drop),
        oidc(),
        section().and_then(|database| StoreLocation::named(&database)).map(drop),
        results::location().map(drop),
        keys::from_settings().map(drop),
        executions().and_then(|executions| runtime::quotas(&executions)).map(drop),
        executions().and_then(|executions| notifications::webhook(&executions).map(drop)),
        policy::policy(settings).map(drop),
        BusSetup::configured(settings).map(drop),
        egress::egress_policy().map(drop),
        steps(),
        worker::check(settings),
        traces(),
    ];
    checks.into_iter().filter_map(Result::err).collect()
}

fn report(
    output: Output,
    files: &[PathBuf],
    problems: &[Problem],
    warnings: &[String],
) -> Result<(), CliError> {
    if output == Output::Json {
        let problems = problems.iter().map(|problem| {
            let place = problem.position.as_ref().map(position_json);
            let (message, hint) = (&problem.message, &problem.hint);
            json!({ "message": message, "hint": hint, "place": place })
        });
        return output::json(&json!({
            "files": files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
            "problems": problems.collect::<Vec<_>>(),
            "warnings": warnings,
        }));
    }
    for warning in warnings {
        output::note(&format!("warning: {}", escape::escaped(warning)));
    }
    for problem in problems {
        output::failure(&settings::failure(vec![problem.clone()]));
    }
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let files = if names.is_empty() { "no file".to_owned() } else { names.join(", ") };
    let count = match problems.len() {
        0 => "no problems".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    output::note(&format!("{count} ({})", escape::escaped(&files)));
    Ok(())
}
