//! `noetl catalog load`: registers many documents, several per request.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::catalog::{BatchResult, RegisterBatchReply, RegisterBatchRequest, RegisterRequest};
use serde_json::json;

use super::document::{self, NamedDocument};
use super::format::{count, diagnostics};
use super::register::files;
use crate::arguments::LoadArguments;
use crate::error::{CliError, ErrorKind};
use crate::output::answers::show;
use crate::output::style::one_line;
use crate::output::{self, OutputFormat, style};
use crate::remote::{self, Remote};

/// Maximum document text per request, in bytes: half of the server's limit, because JSON escaping
/// adds to the size.
const BYTES_MAX: usize = 1 << 20;

/// Exit code if a document could not be registered.
const WRONG: u8 = 2;

pub(crate) fn main(arguments: &LoadArguments) -> Result<ExitCode, CliError> {
    let documents = read(arguments)?;
    if arguments.dry_run {
        let names: String = documents.iter().map(|one| format!("{}\n", one.name)).collect();
        let body = json!({ "files": documents.iter().map(|one| &one.name).collect::<Vec<_>>() });
        show(arguments.remote.form(), &body, |_| names)?;
        output::note(&format!("{} would be sent", count(documents.len(), "document")));
        return Ok(ExitCode::SUCCESS);
    }
    remote::run(&arguments.remote, async |remote| {
        let mut whole = RegisterBatchReply { registered: 0, failed: 0, results: Vec::new() };
        for batch in batches(&documents, usize::from(arguments.batch_size)) {
            let reply = send(&remote, batch, arguments.force).await?;
            whole.registered += reply.registered;
            whole.failed += reply.failed;
            let first = whole.results.len();
            whole.results.extend(
                reply
                    .results
                    .into_iter()
                    .map(|result| BatchResult { index: first + result.index, ..result }),
            );
        }
        print(&remote, &documents, &whole)?;
        Ok(if whole.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
    })
}

/// Reads the given files, and all YAML files below the given directories.
fn read(arguments: &LoadArguments) -> Result<Vec<NamedDocument>, CliError> {
    let mut documents = Vec::new();
    for path in &arguments.paths {
        if path.is_dir() {
            for file in files::files_below(path, &["yaml", "yml"])? {
                documents.push(document::read(&file)?);
            }
        } else {
            documents.push(document::read(path)?);
        }
    }
    Ok(documents)
}

/// Splits the documents into batches of at most `most` documents and `BYTES_MAX` bytes, in order. A
/// larger document gets a batch of its own.
fn batches(documents: &[NamedDocument], most: usize) -> Vec<&[NamedDocument]> {
    let mut batches = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    for (index, document) in documents.iter().enumerate() {
        let size = document.text.len();
        if index > first && (index - first == most || bytes + size > BYTES_MAX) {
            batches.push(&documents[first..index]);
            (first, bytes) = (index, 0);
        }
        bytes += size;
    }
    if first < documents.len() {
        batches.push(&documents[first..]);
    }
    batches
}

/// Sends a batch. If the server rejects the whole batch, for example because it is too large, sends
/// each document separately, so that each is registered or has its own error.
async fn send(
    remote: &Remote,
    batch: &[NamedDocument],
    force: bool,
) -> Result<RegisterBatchReply, CliError> {
    let whole = match ask(remote, batch, force).await {
        Err(failure) if failure.kind() == ErrorKind::User => failure,
        answer => return answer,
    };
    if let [_] = batch {
        return Ok(RegisterBatchReply {
            registered: 0,
            failed: 1,
            results: vec![refused(0, &whole)],
        });
    }
    let mut reply = RegisterBatchReply { registered: 0, failed: 0, results: Vec::new() };
    for (index, document) in batch.iter().enumerate() {
        match ask(remote, std::slice::from_ref(document), force).await {
            Err(failure) if failure.kind() == ErrorKind::User => {
                reply.failed += 1;
                reply.results.push(refused(index, &failure));
            }
            Err(failure) => return Err(failure),
            Ok(one) => {
                reply.registered += one.registered;
                reply.failed += one.failed;
                reply
                    .results
                    .extend(one.results.into_iter().map(|one| BatchResult { index, ..one }));
            }
        }
    }
    Ok(reply)
}

async fn ask(
    remote: &Remote,
    batch: &[NamedDocument],
    force: bool,
) -> Result<RegisterBatchReply, CliError> {
    let items = batch.iter().map(|one| RegisterRequest::playbook(one.text.clone())).collect();
    let call = calls::register_batch(&RegisterBatchRequest { items }, force);
    Ok(remote.ask(call).await?.value)
}

fn refused(index: usize, failure: &CliError) -> BatchResult {
    BatchResult {
        index,
        status: "failed".to_owned(),
        path: None,
        version: None,
        catalog_id: None,
        error: Some(failure.text()),
        diagnostics: Vec::new(),
    }
}

fn print(
    remote: &Remote,
    documents: &[NamedDocument],
    whole: &RegisterBatchReply,
) -> Result<(), CliError> {
    let style = style::of_stderr();
    let mut sentences = String::new();
    for result in &whole.results {
        let name = documents.get(result.index).map_or("", |document| &document.name);
        let diagnostics = diagnostics(name, &result.diagnostics, style);
        if !diagnostics.is_empty() {
            output::note(diagnostics.trim_end());
        }
        match (&result.error, &result.path, result.version) {
            (Some(error), _, _) => {
                output::note(&format!("{}: {name}: {}", style.bad("error"), one_line(error)));
            }
            (None, path, version) => {
                let path = one_line(path.as_deref().unwrap_or_default());
                let version = version.unwrap_or_default();
                sentences.push_str(&format!("registered {path} version {version}\n"));
            }
        }
    }
    let body = serde_json::to_value(whole).unwrap_or_default();
    show(remote.form, &body, |_| sentences)?;
    if remote.form == OutputFormat::Table {
        output::note(&format!("{} registered, {} failed", whole.registered, whole.failed));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(documents: &[usize], most: usize) -> Vec<usize> {
        let document =
            |size: &usize| NamedDocument { name: String::new(), text: "x".repeat(*size) };
        let documents: Vec<NamedDocument> = documents.iter().map(document).collect();
        batches(&documents, most).into_iter().map(<[NamedDocument]>::len).collect()
    }

    #[test]
    fn batches_are_limited_in_items_and_bytes() {
        assert!(sizes(&[], 2).is_empty());
        assert_eq!(sizes(&[1, 1, 1, 1, 1], 2), [2, 2, 1]);
        assert_eq!(sizes(&[1, 1], 2), [2]);
        assert_eq!(sizes(&[BYTES_MAX, 1, BYTES_MAX - 1, 1], 100), [1, 2, 1]);
        // An oversized document is sent alone, so that the server rejects only that one.
        assert_eq!(sizes(&[1, 2 * BYTES_MAX, 1], 100), [1, 1, 1]);
    }
}
