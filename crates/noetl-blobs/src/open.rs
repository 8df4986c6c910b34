//! Making a place from what a program was told.

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

use crate::{ObjectBlobs, Place};

/// How long requests to a bucket are tried again: as long as a worker's report is held.
const RETRY_MAX: Duration = Duration::from_secs(20);

/// A place that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory is not there and cannot be made.
    #[error("could not make the directory {}", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Settings that do not fit together.
    #[error("could not use {place} for content")]
    Place {
        /// What was to be used.
        place: String,
        #[source]
        source: object_store::Error,
    },
}

/// Makes the place, or nothing for [`Place::Database`], which the store is itself.
///
/// `variables` are the program's environment, or the part of it that begins with `AWS_`; a bucket
/// takes endpoint, region and keys from the usual ones. An endpoint without TLS is used as it is
/// given. Whether a bucket answers shows with its first use.
pub fn open(
    place: &Place,
    variables: impl IntoIterator<Item = (String, String)>,
    clock: Arc<dyn Clock>,
) -> Result<Option<ObjectBlobs>, OpenError> {
    let store = match place {
        Place::Database => return Ok(None),
        Place::Directory(path) => directory(path)?,
        Place::Bucket { name, prefix } => bucket(name, prefix, variables)?,
    };
    Ok(Some(ObjectBlobs::new(store, clock)))
}

fn directory(path: &Path) -> Result<Arc<dyn ObjectStore>, OpenError> {
    // Results are as private as the database that refers to them.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
    let opened = LocalFileSystem::new_with_prefix(path);
    let opened =
        opened.map_err(|source| OpenError::Place { place: path.display().to_string(), source })?;
    // The file and every directory on the way to it are synced before a write is acknowledged, and a
    // name appears only when its file is complete.
    Ok(Arc::new(opened.with_fsync(true).with_automatic_cleanup(true)))
}

fn bucket(
    name: &str,
    prefix: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, OpenError> {
    // Only the first call of a process has an effect, and all of them mean the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig { retry_timeout: RETRY_MAX, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new().with_bucket_name(name).with_retry(retry);
    for (key, value) in variables {
        let known = key.strip_prefix("AWS_").map(|_| key.to_ascii_lowercase());
        let Some(Ok(key)) = known.map(|key| key.parse::<AmazonS3ConfigKey>()) else { continue };
        // The URL names the bucket, whatever the environment says.
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
        built.map_err(|source| OpenError::Place { place: format!("bucket {name}"), source })?;
    match prefix {
        "" => Ok(Arc::new(built)),
        prefix => Ok(Arc::new(PrefixStore::new(built, prefix))),
    }
}
