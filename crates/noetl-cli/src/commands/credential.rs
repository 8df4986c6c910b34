//! `noetl credential`: manages credentials on a server.

pub(super) mod reseal;

use std::path::Path;
use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::credentials::{CredentialView, PutCredential};
use serde_json::{Map, Value};

use super::format::time;
use super::{document, payload};
use crate::arguments::{
    CredentialCommand, GetCredentialArguments, RemoteArguments, SetCredentialArguments,
};
use crate::error::{CliError, ErrorKind};
use crate::output;
use crate::output::answers::show;
use crate::output::style::{TextStyle, one_line};
use crate::output::table::{Table, TableCell, fields};
use crate::remote;

pub(crate) fn main(command: &CredentialCommand) -> Result<ExitCode, CliError> {
    match command {
        CredentialCommand::Set(arguments) => set(arguments),
        CredentialCommand::List(arguments) => {
            listed(arguments.kind.as_deref(), arguments.find.as_deref(), &arguments.remote)
        }
        CredentialCommand::Get(arguments) => get(arguments),
        CredentialCommand::Delete(arguments) => delete(&arguments.name, &arguments.remote),
        CredentialCommand::Reseal(arguments) => reseal::main(arguments),
    }
}

fn set(arguments: &SetCredentialArguments) -> Result<ExitCode, CliError> {
    let data = arguments.data.as_deref().map(secrets).transpose()?.unwrap_or_default();
    let data = payload::laid(data, &arguments.set)?;
    if data.is_empty() {
        return Err(CliError::new(ErrorKind::User, "nothing secret was given")
            .hint("give --data FILE, --data - to read stdin, or --set KEY=VALUE"));
    }
    let request = PutCredential {
        name: arguments.name.clone(),
        kind: arguments.kind.clone(),
        data: Value::Object(data),
        meta: None,
        tags: None,
        description: arguments.description.clone(),
    };
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::put_credential(&request)).await?;
        let view = &answer.value;
        for warning in &view.warnings {
            output::note(&one_line(warning));
        }
        show(remote.form, &answer.body, |_| {
            let (kind, name) = (one_line(&view.kind), one_line(&view.name));
            format!("kept {kind} credential {name} ({})\n", view.id)
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Reads an object from a file. An error names the position but omits the line, which may contain a
/// secret.
fn secrets(file: &Path) -> Result<Map<String, Value>, CliError> {
    let document = document::read(file)?;
    let name = &document.name;
    let hint = "write an object as {\"host\": \"…\", \"password\": \"…\"}, in JSON or YAML";
    let wrong = |what: String| CliError::new(ErrorKind::User, what).hint(hint);
    match noetl_playbook::read_data(&document.text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong(format!("{name} is not an object"))),
        Err(diagnostics) => {
            let place = diagnostics.first().map(|it| format!(":{}:{}", it.line, it.column));
            let place = place.unwrap_or_default();
            Err(wrong(format!("{name}{place}: not readable as JSON or YAML")))
        }
    }
}

/// Lists credentials, optionally by type or by text in their name or description.
pub(super) fn listed(
    kind: Option<&str>,
    find: Option<&str>,
    arguments: &RemoteArguments,
) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::credentials(kind, find)).await?;
        show(remote.form, &answer.body, |style| {
            table(&answer.value.items).render(style, "no credentials")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(items: &[CredentialView]) -> Table<5> {
    let mut table = Table::new(["NAME", "TYPE", "CHANGED", "ID", "DESCRIPTION"]);
    for view in items {
        table.row([
            TableCell::new(&view.name),
            TableCell::new(&view.kind),
            TableCell::new(time(view.updated_at)),
            TableCell::new(view.id),
            TableCell::new(view.description.as_deref().unwrap_or_default()),
        ]);
    }
    table
}

/// Prints a credential; secret data only with `--include-data`.
pub(crate) fn get(arguments: &GetCredentialArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.of.remote, async |remote| {
        let call = calls::credential(&arguments.of.name, arguments.include_data);
        let answer = remote.ask(call).await?;
        show(remote.form, &answer.body, |style| one(&answer.value, style))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn one(view: &CredentialView, style: TextStyle) -> String {
    let mut shown = vec![
        ("name", TableCell::new(&view.name)),
        ("type", TableCell::new(&view.kind)),
        ("id", TableCell::new(view.id)),
        ("made", TableCell::new(time(view.created_at))),
        ("changed", TableCell::new(time(view.updated_at))),
    ];
    let tags = view.tags.as_ref().filter(|tags| !tags.is_empty());
    shown.extend(tags.map(|tags| ("tags", TableCell::new(tags.join(", ")))));
    shown.extend(view.description.as_ref().map(|text| ("for", TableCell::new(text))));
    shown.extend(view.data.as_ref().map(|data| ("data", TableCell::new(data))));
    fields(&shown, style)
}

fn delete(name: &str, arguments: &RemoteArguments) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::delete_credential(name)).await?;
        show(remote.form, &answer.body, |_| format!("{}\n", one_line(&answer.value.message)))?;
        Ok(ExitCode::SUCCESS)
    })
}
