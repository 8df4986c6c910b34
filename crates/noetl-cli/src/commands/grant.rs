//! `noetl grant`: manages the paths on which callers may act, and the credentials that playbooks
//! may use.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::grants::{GrantView, NewGrantView};

use super::format::time;
use crate::arguments::{CreateGrantArguments, GrantCommand, GrantsArguments, RemoveGrantArguments};
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::table::{Table, TableCell};
use crate::remote;

pub(crate) fn main(command: GrantCommand) -> Result<ExitCode, CliError> {
    match command {
        GrantCommand::Create(arguments) => create(arguments),
        GrantCommand::List(arguments) => list(&arguments),
        GrantCommand::Remove(arguments) => remove(&arguments),
    }
}

fn create(arguments: CreateGrantArguments) -> Result<ExitCode, CliError> {
    let CreateGrantArguments { role, subject, credential, prefix, remote } = arguments;
    let request = NewGrantView { role, subject, credential, prefix };
    remote::run(&remote, async |remote| {
        let answer = remote.ask(calls::create_grant(&request)).await?;
        show(remote.form, &answer.body, |_| format!("grant {} made\n", answer.value.id))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn list(arguments: &GrantsArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::grants()).await?;
        let table = table(&answer.value.grants);
        show(remote.form, &answer.body, |style| table.render(style, "no grants"))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(grants: &[GrantView]) -> Table<5> {
    let mut table = Table::new(["ID", "GRANTS", "ON", "TO", "MADE"]);
    for GrantView { id, grant, created_at } in grants {
        let what = match (&grant.role, &grant.credential) {
            (Some(role), _) => format!("role {role}"),
            (None, credential) => format!("credential {}", credential.as_deref().unwrap_or("")),
        };
        let to = match (&grant.subject, &grant.role) {
            (Some(subject), _) => subject.as_str(),
            (None, Some(_)) => "every caller with the role",
            (None, None) => "playbooks",
        };
        let prefix = if grant.prefix.is_empty() { "/" } else { &grant.prefix };
        table.row([
            TableCell::new(id),
            TableCell::new(what),
            TableCell::new(prefix),
            TableCell::new(to),
            TableCell::new(time(*created_at)),
        ]);
    }
    table
}

fn remove(arguments: &RemoveGrantArguments) -> Result<ExitCode, CliError> {
    let RemoveGrantArguments { id, remote } = arguments;
    remote::run(remote, async |remote| {
        let answer = remote.ask(calls::remove_grant(id)).await?;
        show(remote.form, &answer.body, |_| format!("grant {id} removed\n"))?;
        Ok(ExitCode::SUCCESS)
    })
}
