//! `noetl catalog` and `noetl list`: manage the documents of a server.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use noetl_api::catalog::{CheckReply, CheckRequest, Entry, ResourceRequest};
use noetl_api::{Version, calls};
use serde_json::Value;

use super::credential;
use super::document::{self, Document};
use super::load;
use super::register::{self, refused};
use super::shown::{diagnostics, time};
use crate::arguments::{
    CatalogCommand, Form, ListArguments, RemoteArguments, ShowArguments, ValidateArguments,
};
use crate::failure::Failure;
use crate::output::answers::show;
use crate::output::table::{Cell, Table};
use crate::output::{self, style};
use crate::remote::{self, Remote};

/// Exit code if a document has errors.
const WRONG: u8 = 2;

pub(crate) fn main(command: &CatalogCommand) -> Result<ExitCode, Failure> {
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
pub(crate) fn list(arguments: &ListArguments) -> Result<ExitCode, Failure> {
    match arguments.kind.to_ascii_lowercase().as_str() {
        "credential" | "credentials" => credential::listed(None, None, &arguments.remote),
        _ => listed(Some(&arguments.kind), false, &arguments.remote),
    }
}

fn listed(kind: Option<&str>, all: bool, arguments: &RemoteArguments) -> Result<ExitCode, Failure> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::documents(kind)).await?;
        show(remote.form, &answer.body, |style| {
            table(&answer.value.entries, all).render(style, "no documents")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(entries: &[Entry], all: bool) -> Table<5> {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path).then(b.version.cmp(&a.version)));
    let mut seen = HashSet::new();
    let mut table = Table::new(["PATH", "KIND", "VERSION", "REGISTERED", "ID"]);
    for entry in entries {
        if seen.insert(&entry.path) || all {
            table.row([
                Cell::new(&entry.path),
                Cell::new(&entry.kind),
                Cell::new(entry.version),
                Cell::new(time(entry.created_at)),
                Cell::new(entry.catalog_id),
            ]);
        }
    }
    table
}

/// Prints a document. The table format prints its source text as registered.
fn get(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
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

fn validate(arguments: &ValidateArguments) -> Result<ExitCode, Failure> {
    remote::run(&arguments.remote, async |remote| {
        let mut bodies = Vec::new();
        let mut is_valid = true;
        for file in &arguments.files {
            let (body, valid) = look_at(&remote, file).await?;
            is_valid &= valid;
            bodies.push(body);
        }
        if remote.form != Form::Table {
            let body = if bodies.len() == 1 { bodies.remove(0) } else { Value::Array(bodies) };
            show(remote.form, &body, |_| String::new())?;
        }
        Ok(if is_valid { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
    })
}

async fn look_at(remote: &Remote, file: &Path) -> Result<(Value, bool), Failure> {
    let Document { name, text } = document::read(file)?;
    let request = CheckRequest { content: text, resource_type: "Playbook".to_owned() };
    let answer = remote.client.ask(calls::validate(&request)).await;
    let answer = answer.map_err(|error| refused(remote, &name, &error))?;
    let CheckReply { valid, diagnostics: found, .. } = &answer.value;
    if remote.form == Form::Table {
        let text = diagnostics(&name, found, style::of_stdout());
        let verdict = if *valid { "ok" } else { "not valid" };
        output::data(format!("{text}{name}: {verdict}\n").as_bytes())?;
    }
    Ok((answer.body, *valid))
}
