//! Opens the blob store that the configuration names.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noetl_model::Clock;
use object_store::ObjectStore;
use object_store::RetryConfig;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;

use crate::{BlobLocation, ObjectBlobs};

/// Maximum total time for retries of one request to a bucket. Equals the time that the server holds
/// a worker's report.
const RETRY_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory doesn't exist and cannot be created.
    #[error("could not make the directory {}", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The settings of the location are invalid or contradict each other.
    #[error("could not use {location} for content")]
    Place {
        /// Directory path or bucket name, for the message.
        location: String,
        #[source]
        source: object_store::Error,
    },
}

/// Opens a blob store, or returns `None` for [`BlobLocation::Database`], where the store itself contains
/// the blobs.
///
/// `variables` is the process environment, or the part of it that begins with `AWS_`. A bucket
/// takes endpoint, region, and keys from the usual `AWS_*` variables. An `http://` endpoint is used
/// without TLS. This function makes no request: an unreachable bucket is reported by the first
/// operation.
pub fn open(
    location: &BlobLocation,
    variables: impl IntoIterator<Item = (String, String)>,
    clock: Arc<dyn Clock>,
) -> Result<Option<ObjectBlobs>, OpenError> {
    let store = match location {
        BlobLocation::Database => return Ok(None),
        BlobLocation::Directory(path) => directory(path)?,
        BlobLocation::Bucket { name, prefix } => bucket(name, prefix, variables)?,
    };
    Ok(Some(ObjectBlobs::new(store, clock)))
}

fn directory(path: &Path) -> Result<Arc<dyn ObjectStore>, OpenError> {
    // Blobs are as confidential as the database that refers to them.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
    let opened = LocalFileSystem::new_with_prefix(path);
    let opened = opened
        .map_err(|source| OpenError::Place { location: path.display().to_string(), source })?;
    // The store syncs the file and every parent directory before it acknowledges a write, and a
    // name appears only once its file is complete.
    Ok(Arc::new(opened.with_fsync(true).with_automatic_cleanup(true)))
}

fn bucket(
    name: &str,
    prefix: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, OpenError> {
    // Only the first call in a process has an effect, and every call installs the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig { retry_timeout: RETRY_MAX, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new().with_bucket_name(name).with_retry(retry);
    for (key, value) in variables {
        let known = key.strip_prefix("AWS_").map(|_| key.to_ascii_lowercase());
        let Some(Ok(key)) = known.map(|key| key.parse::<AmazonS3ConfigKey>()) else { continue };
        // The URL names the bucket; `AWS_BUCKET` is ignored.
        if key == AmazonS3ConfigKey::Bucket {
            continue;
        }
        if key == AmazonS3ConfigKey::Endpoint && value.starts_with("http://") {
            builder = builder.with_allow_http(true);
        }
        builder = builder.with_config(key, value);
    }
    let built = builder.build();
    let built =
        built.map_err(|source| OpenError::Place { location: format!("bucket {name}"), source })?;
    match prefix {
        "" => Ok(Arc::new(built)),
        prefix => Ok(Arc::new(PrefixStore::new(built, prefix))),
    }
}
