//! `noetl register` and `noetl catalog register`: send documents and credentials to a server.

pub(super) mod files;

use std::process::ExitCode;

use noetl_api::catalog::RegisterRequest;
use noetl_api::credentials::PutCredential;
use noetl_api::{ClientError, calls};
use noetl_secrets::CredentialRequest;
use serde_json::Value;

use super::credentials;
use super::document::{self, NamedDocument};
use super::format::{count, diagnostics};
use crate::arguments::{DocumentsArguments, RegisterCommand, RemoteArguments, SourceArguments};
use crate::error::{CliError, ErrorKind};
use crate::output::answers::show;
use crate::output::style::one_line;
use crate::output::{self, style};
use crate::remote::{self, Remote};

pub(crate) fn main(command: &RegisterCommand) -> Result<ExitCode, CliError> {
    match command {
        RegisterCommand::Playbook(arguments) => of_source(arguments, What::Playbooks),
        RegisterCommand::Credential(arguments) => of_source(arguments, What::Credentials),
    }
}

/// Registers documents of any kind.
pub(crate) fn documents(arguments: &DocumentsArguments) -> Result<ExitCode, CliError> {
    let files = arguments.files.iter().map(|file| document::read(file));
    let is_many = arguments.files.len() > 1;
    send_all(files, What::Anything, is_many, arguments.force, &arguments.remote)
}

/// Kind that documents are registered as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Playbooks,
    Credentials,
    /// The kind that each document declares.
    Anything,
}

fn of_source(arguments: &SourceArguments, what: What) -> Result<ExitCode, CliError> {
    let SourceArguments { source, force, remote } = arguments;
    match (&source.file, &source.directory) {
        (Some(file), _) => send_all([document::read(file)], what, false, *force, remote),
        (None, Some(directory)) => {
            let extensions: &[&str] = match what {
                What::Credentials => &["yaml", "yml", "json"],
                What::Playbooks | What::Anything => &["yaml", "yml"],
            };
            let files = files::files_below(directory, extensions)?;
            let documents = files.iter().map(|file: &std::path::PathBuf| document::read(file));
            send_all(documents, what, true, *force, remote)
        }
        (None, None) => Err(CliError::new(ErrorKind::User, "no file was named")),
    }
}

/// Sends every document. A rejected document does not stop the others, but the exit code then
/// reports the failure. Stops if the server is unavailable.
fn send_all(
    documents: impl IntoIterator<Item = Result<NamedDocument, CliError>>,
    what: What,
    is_many: bool,
    force: bool,
    arguments: &RemoteArguments,
) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let mut outcomes = Vec::new();
        let mut failed = None;
        for document in documents {
            let sent = match &document {
                Ok(document) => send(&remote, document, what, force).await,
                Err(_) => Ok(Vec::new()),
            };
            match (document, sent) {
                (Ok(_), Ok(replies)) => outcomes.extend(replies),
                // The remaining requests would fail, too.
                (Ok(_), Err(failure)) if failure.kind() == ErrorKind::Config => {
                    print(&remote, outcomes, is_many)?;
                    return Err(failure);
                }
                (Ok(_), Err(failure)) | (Err(failure), _) => {
                    if !is_many {
                        return Err(failure);
                    }
                    output::failure(&failure);
                    failed = Some(failure.exit_code());
                }
            }
        }
        print(&remote, outcomes, is_many)?;
        Ok(failed.unwrap_or(ExitCode::SUCCESS))
    })
}

/// Outcome of a document: a sentence for people, and the server's response.
struct RegisterOutcome {
    sentence: String,
    body: Value,
}

fn print(remote: &Remote, outcomes: Vec<RegisterOutcome>, is_many: bool) -> Result<(), CliError> {
    let text: String = outcomes.iter().map(|outcome| format!("{}\n", outcome.sentence)).collect();
    let mut bodies: Vec<Value> = outcomes.into_iter().map(|outcome| outcome.body).collect();
    let body = match (is_many, bodies.len()) {
        (false, 1) => bodies.remove(0),
        _ => Value::Array(bodies),
    };
    show(remote.form, &body, |_| text)
}

async fn send(
    remote: &Remote,
    document: &NamedDocument,
    what: What,
    force: bool,
) -> Result<Vec<RegisterOutcome>, CliError> {
    let kind = kind_of(document);
    let is_credential = what == What::Credentials
        || what == What::Anything && kind.as_deref() == Some("credential");
    if is_credential {
        let mut outcomes = Vec::new();
        for request in credentials::of_document(document)? {
            outcomes.push(keep(remote, request).await?);
        }
        return Ok(outcomes);
    }
    // A directory of playbooks may contain other documents.
    if what == What::Playbooks && kind.as_deref().is_some_and(|kind| kind != "playbook") {
        let kind = kind.unwrap_or_default();
        output::note(&format!("{} is a {kind} and was left out", document.name));
        return Ok(Vec::new());
    }
    register(remote, document, force).await.map(|outcome| vec![outcome])
}

async fn register(
    remote: &Remote,
    document: &NamedDocument,
    force: bool,
) -> Result<RegisterOutcome, CliError> {
    let request = RegisterRequest::playbook(document.text.clone());
    let answer = match remote.client.ask(calls::register(&request, force)).await {
        Ok(answer) => answer,
        Err(error) => return Err(refused(remote, &document.name, &error)),
    };
    let reply = &answer.value;
    let style = style::of_stderr();
    let warnings = diagnostics(&document.name, &reply.warnings, style);
    if !warnings.is_empty() {
        output::note(warnings.trim_end());
    }
    let sentence = format!(
        "registered {} {} version {} ({})",
        one_line(&reply.kind),
        one_line(&reply.path),
        reply.version,
        reply.catalog_id,
    );
    Ok(RegisterOutcome { sentence, body: answer.body })
}

/// Prints the diagnostics of a rejected document, and returns a failure that counts the errors.
pub(super) fn refused(remote: &Remote, name: &str, error: &ClientError) -> CliError {
    let failure = remote.failure(error);
    let ClientError::Refused { body, .. } = error else { return failure };
    let text = diagnostics(name, &body.diagnostics, style::of_stderr());
    if text.is_empty() {
        return failure.about(name);
    }
    output::note(text.trim_end());
    let errors = body.diagnostics.iter().filter(|it| it.severity == "error").count();
    CliError::new(failure.kind(), format!("{name} was not taken: {}", count(errors, "error")))
}

/// Stores a credential on the server.
async fn keep(remote: &Remote, request: CredentialRequest) -> Result<RegisterOutcome, CliError> {
    let request = PutCredential {
        name: request.name,
        kind: request.kind,
        data: request.data,
        meta: request.meta,
        tags: Some(request.tags),
        description: request.description,
    };
    let answer = remote.ask(calls::put_credential(&request)).await;
    let answer =
        answer.map_err(|failure| failure.about(&format!("credential '{}'", request.name)))?;
    let view = &answer.value;
    for warning in &view.warnings {
        output::note(&format!("credential '{}': {}", one_line(&view.name), one_line(warning)));
    }
    let (kind, name) = (one_line(&view.kind), one_line(&view.name));
    let sentence = format!("kept {kind} credential {name} ({})", view.id);
    Ok(RegisterOutcome { sentence, body: answer.body })
}

/// Returns the kind that a document declares, in lower case. Returns `None` for an unreadable
/// document, whose errors the server reports.
fn kind_of(document: &NamedDocument) -> Option<String> {
    let data = noetl_playbook::read_data(&document.text).ok()?;
    data.get("kind").and_then(Value::as_str).map(str::to_ascii_lowercase)
}
