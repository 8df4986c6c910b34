//! `noetl context`: manages contexts, which are named servers.

use std::io::Read as _;
use std::process::ExitCode;

use noetl_api::Client;
use serde_json::{Value, json};

use crate::arguments::{ContextCommand, ContextFields, SetContextArguments};
use crate::contexts::{self, Context, Contexts, ContextsLock};
use crate::error::{CliError, ErrorKind};
use crate::output::answers::show;
use crate::output::table::{Table, TableCell, Tone, fields};
use crate::output::{self};

/// Maximum size of a token read from stdin, in bytes.
const TOKEN_MAX: u64 = 64 * 1024;

pub(crate) fn main(command: ContextCommand) -> Result<ExitCode, CliError> {
    let file = contexts::file()?;
    match command {
        ContextCommand::Add(arguments) => {
            let mut changing = ContextsLock::begin(file)?;
            let (context, what) = add(&mut changing, arguments)?;
            changing.write()?;
            note(&context, what);
        }
        ContextCommand::Update(arguments) => {
            let mut changing = ContextsLock::begin(file)?;
            let context = update(&mut changing, arguments)?;
            changing.write()?;
            note(&context, "is changed");
        }
        ContextCommand::Use(arguments) => {
            let mut changing = ContextsLock::begin(file)?;
            let context = changing.contexts.named(&arguments.name)?;
            changing.set_current(&arguments.name);
            changing.write()?;
            note(&context, "is used from now on");
        }
        ContextCommand::Delete(arguments) => {
            let mut changing = ContextsLock::begin(file)?;
            let context = changing.contexts.named(&arguments.name)?;
            changing.remove(&arguments.name);
            changing.write()?;
            note(&context, "is forgotten");
        }
        ContextCommand::List(arguments) => {
            let contexts = Contexts::read(file)?;
            let all = contexts.all();
            let current = contexts.current();
            let views = all.iter().map(|context| view(context, current)).collect();
            show(arguments.form(), &Value::Array(views), |style| {
                table(&all, current).render(style, "no contexts; add one with `noetl context add`")
            })?;
        }
        ContextCommand::Current(arguments) => {
            let contexts = Contexts::read(file)?;
            let name = contexts.current().ok_or_else(|| {
                CliError::new(ErrorKind::User, "no context is current")
                    .hint("choose one with `noetl context use NAME`")
            })?;
            let context = contexts.named(name)?;
            show(arguments.form(), &view(&context, Some(name)), |style| {
                let server = TableCell::maybe(context.server_url.as_ref());
                let shown = [
                    ("context", TableCell::new(&context.name)),
                    ("server", server),
                    ("token", TableCell::new(has_token(&context))),
                ];
                fields(&shown, style)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a context. Returns it with a phrase for the confirmation message.
fn add(
    changing: &mut ContextsLock,
    arguments: SetContextArguments,
) -> Result<(Context, &'static str), CliError> {
    let SetContextArguments { name, fields, set_current } = arguments;
    if name.trim().is_empty() {
        return Err(CliError::new(ErrorKind::User, "a context needs a name"));
    }
    if changing.contexts.get(&name).is_some() {
        return Err(CliError::new(ErrorKind::User, format!("there is a context '{name}' already"))
            .hint(format!("change it with `noetl context update {name}`")));
    }
    if fields.server_url.is_none() {
        return Err(CliError::new(ErrorKind::User, "a context needs a server")
            .hint(format!("`noetl context add {name} --server-url https://noetl.example`")));
    }
    let is_first = changing.contexts.current().is_none();
    let mut values = field_values(fields)?;
    if !values.iter().any(|(key, _)| *key == "runtime") {
        // Other programs that share the file require this key.
        values.push(("runtime", "auto".to_owned()));
    }
    changing.set(&name, &values);
    if set_current || is_first {
        changing.set_current(&name);
    }
    let context = changing.contexts.named(&name)?;
    let is_current = changing.contexts.current() == Some(name.as_str());
    Ok((context, if is_current { "is kept and used from now on" } else { "is kept" }))
}

fn update(
    changing: &mut ContextsLock,
    arguments: SetContextArguments,
) -> Result<Context, CliError> {
    let SetContextArguments { name, fields, set_current } = arguments;
    changing.contexts.named(&name)?;
    let values = field_values(fields)?;
    if values.is_empty() && !set_current {
        return Err(CliError::new(ErrorKind::User, "nothing to change was given")
            .hint("give --server-url, --token, --runtime or --set-current"));
    }
    changing.set(&name, &values);
    if set_current {
        changing.set_current(&name);
    }
    changing.contexts.named(&name)
}

/// Returns the given fields as key-value pairs, after validation of the server URL.
fn field_values(fields: ContextFields) -> Result<Vec<(&'static str, String)>, CliError> {
    let mut values = Vec::new();
    if let Some(url) = fields.server_url {
        Client::new(&url).map_err(|error| {
            CliError::from_error(ErrorKind::User, &error).hint("write it as https://noetl.example")
        })?;
        values.push(("server_url", url));
    }
    if let Some(token) = fields.token {
        values.push(("token", if token == "-" { token_from_stdin()? } else { token }));
    }
    values.extend(fields.runtime.map(|runtime| ("runtime", runtime)));
    Ok(values)
}

fn token_from_stdin() -> Result<String, CliError> {
    let mut text = String::new();
    let read = std::io::stdin().take(TOKEN_MAX).read_to_string(&mut text);
    read.map_err(|error| {
        CliError::from_error(ErrorKind::User, &error).about("could not read a token from stdin")
    })?;
    match text.trim() {
        "" => Err(CliError::new(ErrorKind::User, "there was no token on stdin")),
        token => Ok(token.to_owned()),
    }
}

fn has_token(context: &Context) -> &'static str {
    if context.token.is_some() { "yes" } else { "no" }
}

/// Returns a context as JSON, without its token.
fn view(context: &Context, current: Option<&str>) -> Value {
    json!({
        "name": context.name,
        "current": current == Some(context.name.as_str()),
        "server_url": context.server_url,
        "runtime": context.runtime,
        "has_token": context.token.is_some(),
    })
}

fn table(all: &[Context], current: Option<&str>) -> Table<4> {
    let mut table = Table::new(["", "NAME", "SERVER", "TOKEN"]);
    for context in all {
        let is_current = current == Some(context.name.as_str());
        table.row([
            TableCell::new(if is_current { "*" } else { " " }).toned(Tone::Good),
            TableCell::new(&context.name),
            TableCell::maybe(context.server_url.as_ref()),
            TableCell::new(has_token(context)),
        ]);
    }
    table
}

fn note(context: &Context, what: &str) {
    let server = context.server_url.as_deref().unwrap_or("no server");
    output::note(&format!("context '{}' ({server}) {what}", context.name));
}
