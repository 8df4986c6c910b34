//! Reads credential files, and stores the credentials of a local run.

use std::path::{Path, PathBuf};

use noetl_control::ControlPlane;
use noetl_model::{Map, Tenant, Value};
use noetl_secrets::{CredentialRequest, Credentials, EncryptionKey};

use super::document::{self, NamedDocument};
use crate::database::Database;
use crate::error::{CliError, ErrorKind};
use crate::keys;
use crate::output;

/// Hint that shows the expected format of a credential file.
const FORM: &str = "write `name: my-db`, `type: postgres` and `data: {host: …, password: …}`, or a \
                    list of such entries";

/// Returns the credentials of these files, in order.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<CredentialRequest>, CliError> {
    let mut credentials = Vec::new();
    for file in files {
        credentials.extend(of_document(&document::read(file)?)?);
    }
    Ok(credentials)
}

/// Returns the credentials of one document.
pub(super) fn of_document(document: &NamedDocument) -> Result<Vec<CredentialRequest>, CliError> {
    let read = entries(document)?.into_iter().map(|(place, entry)| {
        let wrong = |what: String| {
            CliError::new(ErrorKind::User, format!("{}: {place} {what}", document.name)).hint(FORM)
        };
        request(entry).map_err(wrong)
    });
    read.collect()
}

/// Returns the key that encrypts the credentials of a run, or `None` if none is needed.
///
/// Credentials in a database must be readable after the run. For SQLite, the key is therefore
/// stored in the directory of the database, and for Postgres it must be configured.
pub(super) fn key(database: &Database, brings: bool) -> Result<Option<EncryptionKey>, CliError> {
    if let Some(key) = keys::from_settings()? {
        return Ok(Some(key));
    }
    match database {
        Database::Memory => Ok(Some(EncryptionKey::generate())),
        Database::Sqlite(file) => {
            let directory = file.parent().unwrap_or(Path::new(""));
            let directory = if directory == Path::new("") { Path::new(".") } else { directory };
            match brings || keys::is_in(directory) {
                true => keys::of_directory(directory).map(Some),
                false => Ok(None),
            }
        }
        Database::Postgres(_) if brings => Err(CliError::new(
            ErrorKind::Config,
            format!("there is no {} to encrypt credentials with", noetl_secrets::KEY_VARIABLE),
        )
        .hint("set it to the key that the servers of this database use, or omit --database-url")),
        Database::Postgres(_) => Ok(None),
    }
}

/// Stores credentials, replacing any with the same names.
pub(super) async fn keep(
    control: &ControlPlane,
    tenant: &Tenant,
    requests: Vec<CredentialRequest>,
) -> Result<(), CliError> {
    for request in requests {
        let name = request.name.clone();
        for warning in Credentials::warnings(&request.kind, &request.data) {
            output::note(&format!("credential '{name}': {warning}"));
        }
        let stored = control.secrets.credentials.put(tenant, request).await;
        stored.map_err(|error| {
            CliError::from_error(ErrorKind::Config, &error).about(&format!("credential '{name}'"))
        })?;
    }
    Ok(())
}

/// Returns the entries of a document, each with a description of its position for messages.
fn entries(document: &NamedDocument) -> Result<Vec<(String, Value)>, CliError> {
    // The message omits the line, which may contain a secret.
    let data = noetl_playbook::read_data(&document.text).map_err(|diagnostics| {
        let first = diagnostics.first();
        let place = first.map_or_else(String::new, |it| format!(":{}:{}", it.line, it.column));
        let why = first.map_or("it is empty", |it| it.message.as_str());
        let message = format!("{}{place}: not readable as YAML or JSON: {why}", document.name);
        CliError::new(ErrorKind::User, message).hint(FORM)
    })?;
    match data {
        Value::Array(items) => {
            let named = items.into_iter().enumerate();
            Ok(named.map(|(at, item)| (format!("entry {}", at + 1), item)).collect())
        }
        Value::Object(mut map) if map.contains_key("name") || map.contains_key("data") => {
            // The caller has already read the document's kind.
            map.shift_remove("apiVersion");
            map.shift_remove("kind");
            Ok(vec![("the credential".to_owned(), Value::Object(map))])
        }
        // A map from credential names to entries.
        Value::Object(map) => Ok(map
            .into_iter()
            .map(|(name, entry)| match entry {
                Value::Object(mut entry) => {
                    entry.insert("name".to_owned(), name.as_str().into());
                    (format!("'{name}'"), Value::Object(entry))
                }
                other => (format!("'{name}'"), other),
            })
            .collect()),
        other => Ok(vec![("the document".to_owned(), other)]),
    }
}

fn request(entry: Value) -> Result<CredentialRequest, String> {
    let Value::Object(mut entry) = entry else { return Err("is not a map".to_owned()) };
    let text = |entry: &mut Map, key: &str| match entry.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("has a '{key}' that is not text")),
    };
    let name = text(&mut entry, "name")?.ok_or("has no 'name'")?;
    let kind = text(&mut entry, "type")?.ok_or("has no 'type'")?;
    let description = text(&mut entry, "description")?;
    let (meta, tags) = (entry.remove("meta"), entry.remove("tags"));
    let tags = match tags {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tags)) => {
            tags.iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect()
        }
        Some(_) => return Err("has 'tags' that are no list".to_owned()),
    };
    let data = match entry.remove("data") {
        Some(data) if entry.is_empty() => data,
        None if !entry.is_empty() => Value::Object(entry),
        None => return Err("has no 'data'".to_owned()),
        Some(_) => {
            let (key, _) = entry.iter().next().ok_or("has no 'data'")?;
            return Err(format!("has '{key}' beside 'data'"));
        }
    };
    Ok(CredentialRequest { name, kind, data, meta, tags, description })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> Result<Vec<(String, String, Value)>, String> {
        let home = tempfile::TempDir::new().expect("a directory");
        let file = home.path().join("c.yaml");
        std::fs::write(&file, text).expect("a file");
        let read = read(std::slice::from_ref(&file)).map_err(|failure| failure.text());
        let requests = read.map_err(|text| text.replace(&file.display().to_string(), "c.yaml"))?;
        Ok(requests.into_iter().map(|it| (it.name, it.kind, it.data)).collect())
    }

    #[test]
    fn a_file_may_contain_one_credential_a_list_or_a_map() {
        let one = ("a".to_owned(), "bearer".to_owned(), json!({"token": "t"}));
        for text in [
            "name: a\ntype: bearer\ndata: {token: t}\ntags: [x]\n",
            "- {name: a, type: bearer, data: {token: t}, description: d, meta: {m: 1}}\n",
            r#"[{"name": "a", "type": "bearer", "data": {"token": "t"}}]"#,
            "a: {type: bearer, data: {token: t}}",
            "a: {type: bearer, token: t}",
        ] {
            assert_eq!(of(text), Ok(vec![one.clone()]), "{text}");
        }
        assert_eq!(of("[]"), Ok(vec![]));
    }

    #[test]
    fn invalid_lines_are_reported_without_their_content() {
        for (text, expected) in [
            ("", "not readable as YAML or JSON"),
            ("password: [sesame", "c.yaml:2:1: not readable"),
            ("text", "the document is not a map"),
            ("- 5", "entry 1 is not a map"),
            ("- {type: a, data: {}}", "entry 1 has no 'name'"),
            ("a: {data: {}}", "'a' has no 'type'"),
            ("a: {type: x}", "'a' has no 'data'"),
            ("a: {type: x, data: {}, token: sesame}", "'a' has 'token' beside 'data'"),
            ("a: {type: 5, data: {}}", "'a' has a 'type' that is not text"),
        ] {
            let message = of(text).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains("sesame"), "{text}: {message}");
        }
    }
}
