//! Key-value buckets and object stores.

use async_nats::Client;
use async_nats::jetstream::context::{KeyValueErrorKind, ObjectStoreErrorKind};
use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::object_store::{self, GetErrorKind, ObjectStore};
use async_nats::jetstream::{self, kv};
use futures::StreamExt;
use noetl_model::{Failure, FailureKind, Value};
use serde_json::json;
use tokio::io::AsyncReadExt;

use super::message::{cause, check_size, payload, put_payload};
use crate::ToolCall;
use crate::config::{self, type_name, wrong};

/// Reads a key. A missing key is a result, not a failure.
pub(super) async fn kv_get(client: &Client, call: &ToolCall, max: usize) -> Result<Value, Failure> {
    let (bucket, key) = (required(call, "bucket")?, required(call, "key")?);
    let store = bucket_of(client, call).await?;
    let entry = store.entry(key).await.map_err(|error| refused("be read", key, &error))?;
    match entry.filter(|entry| entry.operation == Operation::Put) {
        None => Ok(json!({"bucket": bucket, "key": key, "found": false, "value": null})),
        Some(entry) => {
            check_size(entry.value.len(), max)?;
            let mut answer = json!({
                "bucket": bucket, "key": key, "found": true, "revision": entry.revision,
            });
            put_payload(&mut answer, "value", &entry.value);
            Ok(answer)
        }
    }
}

/// Sets a key: unconditionally, only if it doesn't exist (`create`), or only if it is unchanged
/// since `revision`.
pub(super) async fn kv_put(client: &Client, call: &ToolCall) -> Result<Value, Failure> {
    let (bucket, key) = (required(call, "bucket")?, required(call, "key")?);
    let value = payload(call)?;
    let store = bucket_of(client, call).await?;
    let conflict = |message: String| Failure::new(FailureKind::DbConstraint, message);
    let revision = match (flag(call, "create")?, call.config.get("revision")) {
        (true, _) => store.create(key, value).await.map_err(|error| match error.kind() {
            CreateErrorKind::AlreadyExists => conflict(format!("key '{key}' is there already")),
            _ => refused("be written", key, &error),
        })?,
        (false, None | Some(Value::Null)) => {
            store.put(key, value).await.map_err(|error| refused("be written", key, &error))?
        }
        (false, Some(revision)) => {
            let revision = revision.as_u64().ok_or_else(|| {
                wrong(format!("`revision` must be a whole number, not {}", type_name(revision)))
            })?;
            store.update(key, value, revision).await.map_err(|error| match error.kind() {
                UpdateErrorKind::WrongLastRevision => {
                    conflict(format!("key '{key}' is not at revision {revision} any more"))
                }
                _ => refused("be written", key, &error),
            })?
        }
    };
    Ok(json!({"bucket": bucket, "key": key, "revision": revision}))
}

/// Deletes a key. A missing key is not an error.
pub(super) async fn kv_delete(client: &Client, call: &ToolCall) -> Result<Value, Failure> {
    let (bucket, key) = (required(call, "bucket")?, required(call, "key")?);
    let store = bucket_of(client, call).await?;
    store.delete(key).await.map_err(|error| refused("be removed", key, &error))?;
    Ok(json!({"bucket": bucket, "key": key, "deleted": true}))
}

/// Lists the keys of a bucket, in alphabetical order.
pub(super) async fn kv_keys(
    client: &Client,
    call: &ToolCall,
    max: usize,
) -> Result<Value, Failure> {
    let bucket = required(call, "bucket")?;
    let prefix = config::text(&call.config, "prefix")?.unwrap_or_default();
    let store = bucket_of(client, call).await?;
    let mut listed = store.keys().await.map_err(|error| refused("be listed", bucket, &error))?;
    let mut keys = Vec::new();
    let mut size = 0;
    while let Some(key) = listed.next().await {
        let key = key.map_err(|error| refused("be listed", bucket, &error))?;
        if key.starts_with(prefix) {
            size += key.len() + 3;
            check_size(size, max)?;
            keys.push(key);
        }
    }
    keys.sort_unstable();
    Ok(json!({"bucket": bucket, "count": keys.len(), "keys": keys}))
}

/// Reads an object. A missing one is a `not_found` failure.
pub(super) async fn object_get(
    client: &Client,
    call: &ToolCall,
    max: usize,
) -> Result<Value, Failure> {
    let (bucket, name) = (required(call, "bucket")?, required(call, "name")?);
    let store = store_of(client, call).await?;
    let object = store.get(name).await.map_err(|error| match error.kind() {
        GetErrorKind::NotFound => absent(name),
        _ => refused("be read", name, &error),
    })?;
    check_size(object.info().size, max)?;
    let mut answer = json!({"bucket": bucket, "name": name, "size": object.info().size});
    let mut content = Vec::new();
    // Reading one byte beyond the limit detects an object that is larger than its stated size.
    let mut bounded = object.take(max as u64 + 1);
    bounded.read_to_end(&mut content).await.map_err(|error| refused("be read", name, &error))?;
    check_size(content.len(), max)?;
    put_payload(&mut answer, "data", &content);
    Ok(answer)
}

/// Writes an object, replacing an earlier one of the same name.
pub(super) async fn object_put(client: &Client, call: &ToolCall) -> Result<Value, Failure> {
    let (bucket, name) = (required(call, "bucket")?, required(call, "name")?);
    let content = payload(call)?;
    let store = store_of(client, call).await?;
    let written = store.put(name, &mut &content[..]).await;
    let info = written.map_err(|error| refused("be written", name, &error))?;
    Ok(json!({"bucket": bucket, "name": name, "size": info.size, "digest": info.digest}))
}

/// Deletes an object. A missing one is a `not_found` failure.
pub(super) async fn object_delete(client: &Client, call: &ToolCall) -> Result<Value, Failure> {
    let (bucket, name) = (required(call, "bucket")?, required(call, "name")?);
    let store = store_of(client, call).await?;
    store.delete(name).await.map_err(|error| match error.kind() {
        object_store::DeleteErrorKind::NotFound => absent(name),
        _ => refused("be removed", name, &error),
    })?;
    Ok(json!({"bucket": bucket, "name": name, "deleted": true}))
}

/// Lists the names and sizes of a store's objects.
pub(super) async fn object_list(
    client: &Client,
    call: &ToolCall,
    max: usize,
) -> Result<Value, Failure> {
    let bucket = required(call, "bucket")?;
    let store = store_of(client, call).await?;
    let mut listed = store.list().await.map_err(|error| refused("be listed", bucket, &error))?;
    let mut objects = Vec::new();
    let mut size = 0;
    while let Some(object) = listed.next().await {
        let object = object.map_err(|error| refused("be listed", bucket, &error))?;
        size += object.name.len() + 30;
        check_size(size, max)?;
        objects.push((object.name, object.size));
    }
    objects.sort_unstable();
    let objects: Vec<_> =
        objects.into_iter().map(|(name, size)| json!({"name": name, "size": size})).collect();
    Ok(json!({"bucket": bucket, "count": objects.len(), "objects": objects}))
}

async fn bucket_of(client: &Client, call: &ToolCall) -> Result<Store, Failure> {
    let bucket = required(call, "bucket")?;
    let context = jetstream::new(client.clone());
    let key_values = match flag(call, "create_bucket")? {
        false => context.get_key_value(bucket).await.map_err(|error| match error.kind() {
            KeyValueErrorKind::InvalidStoreName => not_a_bucket(bucket),
            _ => no_bucket(bucket, &error),
        })?,
        true => {
            let config = kv::Config { bucket: bucket.to_owned(), ..kv::Config::default() };
            match context.get_key_value(bucket).await {
                Ok(store) => store,
                Err(_) => context
                    .create_key_value(config)
                    .await
                    .map_err(|error| refused("be made", bucket, &error))?,
            }
        }
    };
    Ok(key_values)
}

async fn store_of(client: &Client, call: &ToolCall) -> Result<ObjectStore, Failure> {
    let bucket = required(call, "bucket")?;
    let context = jetstream::new(client.clone());
    match (context.get_object_store(bucket).await, flag(call, "create_bucket")?) {
        (Ok(store), _) => Ok(store),
        (Err(error), _) if error.kind() == ObjectStoreErrorKind::InvalidBucketName => {
            Err(not_a_bucket(bucket))
        }
        (Err(error), false) => Err(no_bucket(bucket, &error)),
        (Err(_), true) => {
            let config = object_store::Config {
                bucket: bucket.to_owned(),
                ..object_store::Config::default()
            };
            let made = context.create_object_store(config).await;
            made.map_err(|error| refused("be made", bucket, &error))
        }
    }
}

fn required<'a>(call: &'a ToolCall, key: &str) -> Result<&'a str, Failure> {
    match config::text(&call.config, key)?.filter(|text| !text.is_empty()) {
        Some(text) => Ok(text),
        None => Err(wrong(format!("this nats operation needs a `{key}`"))),
    }
}

fn flag(call: &ToolCall, key: &str) -> Result<bool, Failure> {
    match call.config.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => {
            Err(wrong(format!("`{key}` must be true or false, not {}", type_name(other))))
        }
    }
}

fn not_a_bucket(bucket: &str) -> Failure {
    wrong(format!("`bucket` '{bucket}' must be made of letters, digits, '-' and '_'"))
}

fn no_bucket(bucket: &str, error: &dyn std::error::Error) -> Failure {
    let why = cause(error);
    Failure::new(
        FailureKind::NotFound,
        format!("bucket '{bucket}' was not found: {why}; `create_bucket: true` makes it"),
    )
}

fn absent(name: &str) -> Failure {
    Failure::new(FailureKind::NotFound, format!("there is no object '{name}'"))
}

fn refused(what: &str, name: &str, error: &dyn std::error::Error) -> Failure {
    let why = cause(error);
    let is_key = why.contains("key cannot be") || why.contains("invalid");
    let kind = if is_key { FailureKind::ClientError } else { FailureKind::ServerError };
    Failure::new(kind, format!("'{name}' could not {what}: {why}"))
}
