//! Loads a step's program from its settings, a file, or a URL.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use noetl_model::{Failure, FailureKind, Map, Value};
use tokio::io::AsyncReadExt;

use crate::config::{self, type_name, wrong};
use crate::host_protocol::FileTask;
use crate::own::{FileGuard, own_file};
use crate::sandbox::{Sandbox, ToolRun};
use crate::{Http, Tool, ToolCall, auth};

/// Returns the program of a call: its `code`, or the target of its `script`.
pub(super) async fn code<'a>(
    call: &'a ToolCall,
    http: &Http,
    sandbox: &Arc<Sandbox>,
) -> Result<Cow<'a, str>, Failure> {
    let bytes_max = sandbox.options().limits.python_script;
    if let Some(code) = config::text(&call.config, "code")? {
        return Ok(Cow::Borrowed(code));
    }
    let script = match call.config.get("script") {
        Some(Value::Object(script)) => script,
        Some(Value::String(_)) => {
            return Err(wrong(
                "`script` must be a map such as {source: {type: file, path: …}}; a program in the \
                 playbook goes under `code`",
            ));
        }
        Some(other) if !other.is_null() => {
            return Err(wrong(format!("`script` must be a map, not {}", type_name(other))));
        }
        _ => {
            return Err(wrong("a python step needs its program under `code` or `script`"));
        }
    };
    // Some playbooks omit `source` and put its keys directly under `script`.
    let source = config::map(script, "source")?.unwrap_or(script);
    let uri = match config::text(script, "uri")? {
        Some(uri) => Some(uri),
        None => config::text(source, "uri")?,
    };
    let kind = match (config::text(source, "type")?, uri) {
        (Some(kind), _) => kind,
        (None, Some(uri)) => match uri.split_once("://") {
            Some(("http" | "https", _)) => "http",
            Some(("file", _)) | None => "file",
            Some((scheme, _)) => scheme,
        },
        (None, None) => "inline",
    };
    match kind {
        "inline" => match config::first(source, &["code", "content", "text"]) {
            Some((_, Value::String(code))) => Ok(Cow::Borrowed(code)),
            _ => Err(wrong("`script.source` of type inline needs the program under `code`")),
        },
        "file" => {
            let path = config::text(source, "path")?.or(uri);
            let path = path.ok_or_else(|| wrong("`script.source` of type file needs a `path`"))?;
            let path = path.strip_prefix("file://").unwrap_or(path);
            let guard = sandbox.guard(&call.tenant);
            if !sandbox.is_on() {
                return read_file(path, bytes_max, &guard).await.map(Cow::Owned);
            }
            let task = FileTask::Read { path: path.to_owned(), bytes_max, guard };
            match ToolRun::run(sandbox, call, call.time_limit()?, &task).await? {
                Value::String(code) => Ok(Cow::Owned(code)),
                other => Err(wrong(format!("'{path}' was read as {}", type_name(&other)))),
            }
        }
        "http" | "https" => fetch(call, http, source, uri, bytes_max).await.map(Cow::Owned),
        other => Err(wrong(format!(
            "`script.source.type` must be inline, file or http, not '{other}'; a signed address of \
             a bucket's object is of type http"
        ))),
    }
}

/// Reads a text file of at most `bytes_max` bytes. Fails if the guard rejects it.
pub(crate) async fn read_file(
    path: &str,
    bytes_max: usize,
    guard: &FileGuard,
) -> Result<String, Failure> {
    guard.check(Path::new(path), false)?;
    let unreadable = |error: &dyn std::fmt::Display| {
        let message = format!("the program '{path}' cannot be read: {error}");
        Failure::new(FailureKind::NotFound, message)
    };
    let file = tokio::fs::File::open(path).await.map_err(|error| unreadable(&error))?;
    // Checks the open file, because the path may have changed since the first check.
    let metadata = file.metadata().await.map_err(|error| unreadable(&error))?;
    if guard.is_own(&metadata) {
        return Err(own_file(Path::new(path)));
    }
    let mut content = Vec::new();
    // Reads one byte beyond the limit, to detect a larger file.
    let mut bounded = file.take(bytes_max as u64 + 1);
    bounded.read_to_end(&mut content).await.map_err(|error| unreadable(&error))?;
    check_size(content.len(), bytes_max)?;
    String::from_utf8(content)
        .map_err(|_| Failure::new(FailureKind::Parse, format!("'{path}' is not UTF-8 text")))
}

async fn fetch(
    call: &ToolCall,
    http: &Http,
    source: &Map,
    uri: Option<&str>,
    bytes_max: usize,
) -> Result<String, Failure> {
    let mut settings = source.clone();
    if config::first(source, &["url", "endpoint"]).is_none() {
        let uri = uri.ok_or_else(|| wrong("`script.source` of type http needs a `url`"))?;
        settings.insert("url".to_owned(), uri.into());
    }
    settings.insert("response_type".to_owned(), "text".into());
    auth::resolve_in("http", &mut settings, call).await?;
    let mut asking = call.clone();
    asking.timeout = None;
    asking.config = settings;
    asking.input = Map::new();
    let answer = http.run(asking).await.map_err(|failure| Failure {
        message: format!("the step's program could not be fetched: {}", failure.message),
        ..failure
    })?;
    let text = answer["data"].as_str().unwrap_or_default();
    check_size(text.len(), bytes_max)?;
    if answer.get("encoding").is_some() {
        return Err(Failure::new(FailureKind::Parse, "the step's program is not text"));
    }
    Ok(text.to_owned())
}

fn check_size(size: usize, bytes_max: usize) -> Result<(), Failure> {
    match size > bytes_max {
        true => Err(Failure::new(
            FailureKind::OutputLimit,
            format!("the program has more than {bytes_max} bytes (limit `python_script`)"),
        )),
        false => Ok(()),
    }
}
