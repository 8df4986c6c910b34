//! `noetl token`: manages access tokens over HTTP, or directly on the database to create the first
//! token or to replace a lost one.

mod direct;
mod file;

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::tokens::{MadeToken, NewToken, TokenView};
use noetl_model::Timestamp;
use serde_json::Value;

use self::file::NewFile;
use super::format::time;
use crate::arguments::{
    CreateTokenArguments, RevokeTokenArguments, ShownTokenArguments, TokenCommand, TokensArguments,
};
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::table::{Table, TableCell, Tone};
use crate::output::{self, OutputFormat};
use crate::remote;

pub(crate) fn main(command: TokenCommand) -> Result<ExitCode, CliError> {
    match command {
        TokenCommand::Create(arguments) => create(arguments),
        TokenCommand::List(arguments) => list(&arguments),
        TokenCommand::Revoke(arguments) => revoke(&arguments),
        TokenCommand::Header(arguments) => header(&arguments),
        TokenCommand::Link(arguments) => link(&arguments),
    }
}

fn header(arguments: &ShownTokenArguments) -> Result<ExitCode, CliError> {
    let token = remote::token(&arguments.remote)?;
    output::data(format!("Authorization: Bearer {token}\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn link(arguments: &ShownTokenArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::create_code()).await?;
        let server = remote.client.base().as_str().trim_end_matches('/').to_owned();
        let link = format!("{server}/sign-in#code={}", answer.value.code);
        show(remote.form, &answer.body, |_| format!("{link}\n"))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn create(arguments: CreateTokenArguments) -> Result<ExitCode, CliError> {
    let CreateTokenArguments { name, role, expires, pool, file, direct, remote } = arguments;
    let request = NewToken { name, role, expires_in: expires, pool };
    let mut target = match &file {
        None => None,
        Some(path) => match NewFile::create(path)? {
            Some(target) => Some(target),
            None => {
                output::note(&format!("{} exists; no token is made", path.display()));
                return Ok(ExitCode::SUCCESS);
            }
        },
    };
    if let Some(url) = &direct.database_url {
        let form = remote.form();
        return direct::run(url, direct.tenant.as_deref(), async |tokens| {
            let made = tokens.create(request).await?;
            print_made(form, &direct::body(&made)?, &made, target.take())
        });
    }
    remote::run(&remote, async |remote| {
        let answer = remote.ask(calls::create_token(&request)).await?;
        print_made(remote.form, &answer.body, &answer.value, target.take())
    })
}

/// Prints only the token to stdout, so that a script can capture it, or writes it to a file.
fn print_made(
    form: OutputFormat,
    body: &Value,
    made: &MadeToken,
    target: Option<NewFile>,
) -> Result<ExitCode, CliError> {
    match target {
        Some(target) => target.write(&made.token)?,
        None => show(form, body, |_| format!("{}\n", made.token))?,
    }
    if form == OutputFormat::Table {
        let TokenView { id, role, tenant, expires_at, .. } = &made.view;
        let until = expires_at.map_or("for ever".to_owned(), |at| format!("until {}", time(at)));
        let pool = made.view.pool.as_deref().map(|pool| format!(" for pool {pool}"));
        let pool = pool.unwrap_or_default();
        output::note(&format!(
            "token {id}: {role} of tenant {tenant}{pool}, {until}; shown this once"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(arguments: &TokensArguments) -> Result<ExitCode, CliError> {
    let TokensArguments { direct, remote } = arguments;
    if let Some(url) = &direct.database_url {
        let form = remote.form();
        return direct::run(url, direct.tenant.as_deref(), async |tokens| {
            let list = tokens.list().await?;
            print_list(form, &direct::body(&list)?, &list.tokens, direct::now())
        });
    }
    remote::run(remote, async |remote| {
        let answer = remote.ask(calls::tokens()).await?;
        print_list(remote.form, &answer.body, &answer.value.tokens, direct::now())
    })
}

fn print_list(
    form: OutputFormat,
    body: &Value,
    tokens: &[TokenView],
    now: Timestamp,
) -> Result<ExitCode, CliError> {
    show(form, body, |style| table(tokens, now).render(style, "no tokens"))?;
    Ok(ExitCode::SUCCESS)
}

fn table(tokens: &[TokenView], now: Timestamp) -> Table<6> {
    let mut table = Table::new(["ID", "ROLE", "TENANT", "STATE", "MADE", "NAME"]);
    for token in tokens {
        let state = match (token.revoked_at, token.expires_at) {
            (Some(_), _) => TableCell::new("revoked").toned(Tone::Bad),
            (None, Some(at)) if at <= now => TableCell::new("expired").toned(Tone::Bad),
            (None, Some(at)) => TableCell::new(format!("until {}", time(at))).toned(Tone::Good),
            (None, None) => TableCell::new("counts").toned(Tone::Good),
        };
        table.row([
            TableCell::new(&token.id),
            TableCell::new(match &token.pool {
                Some(pool) => format!("{} ({pool})", token.role),
                None => token.role.clone(),
            }),
            TableCell::new(&token.tenant),
            state,
            TableCell::new(time(token.created_at)),
            TableCell::new(&token.name),
        ]);
    }
    table
}

fn revoke(arguments: &RevokeTokenArguments) -> Result<ExitCode, CliError> {
    let RevokeTokenArguments { id, direct, remote } = arguments;
    // If the user pastes a whole token, extract its ID. The secret must not appear in a URL.
    let id = id.strip_prefix("noetl_").and_then(|rest| rest.split('_').next()).unwrap_or(id);
    let print = |form, body: &Value| {
        show(form, body, |_| format!("token {id} does not count any more\n"))?;
        Ok(ExitCode::SUCCESS)
    };
    if let Some(url) = &direct.database_url {
        let form = remote.form();
        return direct::run(url, direct.tenant.as_deref(), async |tokens| {
            print(form, &direct::body(&tokens.revoke(id).await?)?)
        });
    }
    remote::run(remote, async |remote| {
        let answer = remote.ask(calls::revoke_token(id)).await?;
        print(remote.form, &answer.body)
    })
}
