//! `noetl catalog` and `noetl list`: manage the documents of a server.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use noetl_api::catalog::{CatalogItem, CheckReply, CheckRequest, ResourceRequest};
use noetl_api::{Version, calls};
use serde_json::Value;

use super::credential;
use super::document::{self, NamedDocument};
use super::format::{diagnostics, time};
use super::load;
use super::register::{self, refused};
use crate::arguments::{
    CatalogCommand, ListArguments, RemoteArguments, ShowArguments, ValidateArguments,
};
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::table::{Table, TableCell};
use crate::output::{self, OutputFormat, style};
use crate::remote::{self, Remote};

/// Exit code if a document has errors.
const WRONG: u8 = 2;

pub(crate) fn main(command: &CatalogCommand) -> Result<ExitCode, CliError> {
    match command {
        CatalogCommand::Register(arguments) => register::documents(arguments),
        CatalogCommand::Load(arguments) => load::main(arguments),
        CatalogCommand::List(arguments) => {
            listed(arguments.kind.as_deref(), arguments.all, &arguments.remote)
        }
        CatalogCommand::Get(arguments) => get(arguments),
        CatalogCommand::Validate(arguments) => validate(arguments),
    }
}

/// Lists the documents of one kind. The kind `credential` lists credentials, which are not in the
/// catalog.
pub(crate) fn list(arguments: &ListArguments) -> Result<ExitCode, CliError> {
    match arguments.kind.to_ascii_lowercase().as_str() {
        "credential" | "credentials" => credential::listed(None, None, &arguments.remote),
        _ => listed(Some(&arguments.kind), false, &arguments.remote),
    }
}

fn listed(
    kind: Option<&str>,
    all: bool,
    arguments: &RemoteArguments,
) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::documents(kind)).await?;
        show(remote.form, &answer.body, |style| {
            table(&answer.value.entries, all).render(style, "no documents")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(entries: &[CatalogItem], all: bool) -> Table<5> {
    let mut entries: Vec<&CatalogItem> = entries.iter().collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path).then(b.version.cmp(&a.version)));
    let mut seen = HashSet::new();
    let mut table = Table::new(["PATH", "KIND", "VERSION", "REGISTERED", "ID"]);
    for entry in entries {
        if seen.insert(&entry.path) || all {
            table.row([
                TableCell::new(&entry.path),
                TableCell::new(&entry.kind),
                TableCell::new(entry.version),
                TableCell::new(time(entry.created_at)),
                TableCell::new(entry.catalog_id),
            ]);
        }
    }
    table
}

/// Prints a document. The table format prints its source text as registered.
fn get(arguments: &ShowArguments) -> Result<ExitCode, CliError> {
    let request = ResourceRequest {
        path: Some(arguments.path.clone()),
        version: arguments.version.map(Version::Number),
        ..ResourceRequest::default()
    };
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::document(&request)).await?;
        show(remote.form, &answer.body, |_| {
            let text = answer.value.content.clone().unwrap_or_default();
            if text.ends_with('\n') { text } else { text + "\n" }
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn validate(arguments: &ValidateArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.remote, async |remote| {
        let mut bodies = Vec::new();
        let mut is_valid = true;
        for file in &arguments.files {
            let (body, valid) = look_at(&remote, file).await?;
            is_valid &= valid;
            bodies.push(body);
        }
        if remote.form != OutputFormat::Table {
            let body = if bodies.len() == 1 { bodies.remove(0) } else { Value::Array(bodies) };
            show(remote.form, &body, |_| String::new())?;
        }
        Ok(if is_valid { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
    })
}

async fn look_at(remote: &Remote, file: &Path) -> Result<(Value, bool), CliError> {
    let NamedDocument { name, text } = document::read(file)?;
    let request = CheckRequest { content: text, resource_type: "Playbook".to_owned() };
    let answer = remote.client.ask(calls::validate(&request)).await;
    let answer = answer.map_err(|error| refused(remote, &name, &error))?;
    let CheckReply { valid, diagnostics: findings, .. } = &answer.value;
    if remote.form == OutputFormat::Table {
        let text = diagnostics(&name, findings, style::of_stdout());
        let verdict = if *valid { "ok" } else { "not valid" };
        output::data(format!("{text}{name}: {verdict}\n").as_bytes())?;
    }
    Ok((answer.body, *valid))
}
