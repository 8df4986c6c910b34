//! Storage backends of a spool: a local directory, a cloud bucket, or a NATS object store.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, object_store as nats};
use futures::{StreamExt as _, TryStreamExt as _};
use noetl_model::{Map, Value};
use noetl_playbook::subscription::{Spool as Settings, SpoolBackend};
use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig};
use tokio::io::AsyncReadExt as _;

use super::SpoolEntry;
use crate::nats::client;
use crate::source::SourceError;

/// Time to retry a bucket operation before a message is left at its source.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Prefix of all keys in a bucket.
const ROOT: &str = "noetl-spool";

pub(super) enum SpoolStorage {
    Objects(Arc<dyn ObjectStore>),
    Nats(Box<nats::ObjectStore>),
}

impl SpoolStorage {
    pub(super) async fn open(settings: &Settings, credential: &Map) -> Result<Self, SourceError> {
        let bucket = settings.bucket.as_deref().unwrap_or_default();
        let retry = RetryConfig { retry_timeout: RETRY_MAX, ..RetryConfig::default() };
        // Only the first call in a process takes effect, and all calls install the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match settings.backend {
            Some(SpoolBackend::LocalDisk) | None => {
                let path = settings.path.as_deref().unwrap_or_default();
                let unusable = |error: &dyn std::error::Error| {
                    SourceError::Settings(format!("the spool in '{path}' cannot be used: {error}"))
                };
                std::fs::create_dir_all(path).map_err(|error| unusable(&error))?;
                let opened = LocalFileSystem::new_with_prefix(path);
                let opened = opened.map_err(|error| unusable(&error))?;
                // An entry is synced to disk before its message is acked.
                Ok(Self::Objects(Arc::new(opened.with_fsync(true))))
            }
            Some(SpoolBackend::S3) => {
                let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                for (name, value) in texts(credential) {
                    let Ok(key) = name.to_ascii_lowercase().parse() else { continue };
                    builder = builder.with_config(key, value);
                }
                let plain = credential.get("endpoint").and_then(Value::as_str);
                let is_plain = plain.is_some_and(|endpoint| endpoint.starts_with("http://"));
                let built = builder.with_allow_http(is_plain).with_retry(retry).build();
                built.map(|built| Self::Objects(Arc::new(built))).map_err(|error| wrong(&error))
            }
            Some(SpoolBackend::Gcs) => {
                let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                if credential.contains_key("private_key") {
                    let key = Value::Object(credential.clone()).to_string();
                    builder = builder.with_service_account_key(key);
                }
                let built = builder.with_retry(retry).build();
                built.map(|built| Self::Objects(Arc::new(built))).map_err(|error| wrong(&error))
            }
            Some(SpoolBackend::NatsObject) => {
                let context = jetstream::new(client(credential).await?);
                let opened = match context.get_object_store(bucket).await {
                    Ok(opened) => opened,
                    Err(_) => {
                        let bucket = bucket.to_owned();
                        let config = nats::Config { bucket, ..nats::Config::default() };
                        let made = context.create_object_store(config).await;
                        made.map_err(|error| away(&error))?
                    }
                };
                Ok(Self::Nats(Box::new(opened)))
            }
        }
    }

    pub(super) async fn put(&self, name: &str, text: Vec<u8>) -> Result<(), SourceError> {
        match self {
            Self::Objects(store) => {
                let put = store.put(&path(name), text.into()).await;
                put.map(drop).map_err(|error| away(&error))
            }
            Self::Nats(store) => {
                let put = store.put(name, &mut text.as_slice()).await;
                put.map(drop).map_err(|error| away(&error))
            }
        }
    }

    /// Reads an entry. Returns `None` if it no longer exists.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        match self {
            Self::Objects(store) => match store.get(&path(name)).await {
                Ok(object) => {
                    let bytes = object.bytes().await.map_err(|error| away(&error))?;
                    Ok(Some(bytes.to_vec()))
                }
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(away(&error)),
            },
            Self::Nats(store) => {
                let mut object = match store.get(name).await {
                    Ok(object) => object,
                    Err(error) if error.kind() == nats::GetErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(away(&error)),
                };
                let mut text = Vec::new();
                object.read_to_end(&mut text).await.map_err(|error| away(&error))?;
                Ok(Some(text))
            }
        }
    }

    pub(super) async fn delete(&self, name: &str) -> Result<(), SourceError> {
        match self {
            Self::Objects(store) => match store.delete(&path(name)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(away(&error)),
            },
            Self::Nats(store) => match store.delete(name).await {
                Ok(()) => Ok(()),
                Err(error) if error.kind() == nats::DeleteErrorKind::NotFound => Ok(()),
                Err(error) => Err(away(&error)),
            },
        }
    }

    /// Returns the entries of a subscription, oldest first.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<SpoolEntry>, SourceError> {
        let mut listed: Vec<SpoolEntry> = match self {
            Self::Objects(store) => {
                let objects = store.list(Some(&path(prefix))).map_ok(|object| SpoolEntry {
                    name: object.location.to_string().replacen(&format!("{ROOT}/"), "", 1),
                    bytes: object.size,
                });
                objects.try_collect().await.map_err(|error| away(&error))?
            }
            Self::Nats(store) => {
                let objects = store.list().await.map_err(|error| away(&error))?;
                let start = format!("{prefix}/");
                let ours = objects.filter_map(async |object| match object {
                    Ok(info) if info.name.starts_with(&start) => {
                        Some(Ok(SpoolEntry { name: info.name, bytes: info.size as u64 }))
                    }
                    Ok(_) => None,
                    Err(error) => Some(Err(away(&error))),
                });
                ours.try_collect().await?
            }
        };
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }
}

fn path(name: &str) -> Path {
    Path::from(format!("{ROOT}/{name}"))
}

fn texts(map: &Map) -> impl Iterator<Item = (&str, &str)> {
    map.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

fn away(error: &dyn std::error::Error) -> SourceError {
    SourceError::Away(format!("the spool does not answer: {error}"))
}

fn wrong(error: &dyn std::error::Error) -> SourceError {
    SourceError::Settings(format!("the spool cannot be used: {error}"))
}
