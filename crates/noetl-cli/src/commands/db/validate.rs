//! `noetl db validate`: checks the database and every event log in it. Read-only.

use std::process::ExitCode;

use noetl_model::ExecutionId;
use noetl_store::StoreError;
use noetl_views::{Inconsistency, verify};
use serde_json::{Value, json};

use super::{database, unanswered};
use crate::arguments::{DbArguments, Output};
use crate::database::OpenStore;
use crate::error::{CliError, ErrorKind};
use crate::output::{self, progress::Bar, style};

/// Number of executions per page.
const PAGE: usize = 100;

/// Problems found in the database itself and in executions.
#[derive(Default)]
struct Findings {
    database: Vec<String>,
    executions: Vec<Inconsistency>,
    checked: usize,
    events: u64,
}

pub(super) async fn run(arguments: &DbArguments) -> Result<ExitCode, CliError> {
    let database = database(arguments)?;
    let name = database.name();
    let mut findings = Findings::default();
    if let Some(damage) = database.damage() {
        findings.database.push(damage);
        report(&name, None, &findings, arguments.output)?;
        return Ok(ExitCode::FAILURE);
    }
    let (version, known) = database.schema().await?;
    if version == 0 {
        let message = format!("there is no database at {name}");
        return Err(
            CliError::new(ErrorKind::Config, message).hint("make it with `noetl db migrate`")
        );
    }
    if version < known {
        findings.database.push(format!(
            "its schema has version {version} and {known} is needed: run `noetl db migrate`"
        ));
    } else {
        let store = database.look_at().await?;
        let looked = look(&store, &mut findings).await;
        store.close().await;
        looked.map_err(|error| unanswered(&error))?;
    }
    report(&name, Some(version), &findings, arguments.output)?;
    let is_sound = findings.database.is_empty() && findings.executions.is_empty();
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn look(open: &OpenStore, findings: &mut Findings) -> Result<(), StoreError> {
    findings.database = open.check().await?;
    let bar = Bar::new("executions");
    let store = open.store();
    let mut after = ExecutionId::new(i64::MIN);
    let walked = loop {
        let page = match verify(&*store, after, PAGE).await {
            Ok(page) => page,
            // A damaged database can fail here, too. Report the problems found so far.
            Err(error) if !findings.database.is_empty() => {
                findings.database.push(format!("not every execution could be read: {error}"));
                break Ok(());
            }
            Err(error) => break Err(error),
        };
        findings.checked += page.executions;
        findings.events += page.events;
        findings.executions.extend(page.problems);
        bar.count(findings.checked);
        match page.last {
            Some(last) => after = last,
            None => break Ok(()),
        }
    };
    bar.clear();
    walked
}

fn report(
    name: &str,
    version: Option<i64>,
    findings: &Findings,
    output: Output,
) -> Result<(), CliError> {
    if output == Output::Json {
        let of_executions = findings.executions.iter().map(|problem| {
            json!({"execution_id": problem.execution.to_string(), "message": problem.message})
        });
        let of_database = findings.database.iter().map(|message| json!({"message": message}));
        let problems: Vec<Value> = of_database.chain(of_executions).collect();
        return output::json(&json!({
            "database": name,
            "schema_version": version,
            "executions": findings.checked,
            "events": findings.events,
            "problems": problems,
        }));
    }
    let style = style::of_stderr();
    for message in &findings.database {
        output::note(&format!("{}: {}", style.bad("wrong"), style::one_line(message)));
    }
    for Inconsistency { execution, message } in &findings.executions {
        let message = style::one_line(message);
        output::note(&format!("{}: execution {execution}: {message}", style.bad("wrong")));
    }
    let outcome = match findings.database.len() + findings.executions.len() {
        0 => style.good("sound"),
        1 => style.bad("1 problem"),
        count => style.bad(&format!("{count} problems")),
    };
    let executions = match findings.checked {
        1 => "1 execution".to_owned(),
        count => format!("{count} executions"),
    };
    output::note(&format!("{name}: {outcome} ({executions}, {} events)", findings.events));
    Ok(())
}
