//! Loads values that a command references but doesn't contain.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::ExponentialBackoff;
use noetl_model::event::BlobRef;
use noetl_template::{Data, ValueRef, from_json_owned};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Backoff after a transient load failure.
const RETRY: ExponentialBackoff =
    ExponentialBackoff::new(Duration::from_millis(50), Duration::from_secs(5));

/// Source of values stored as blobs outside the event log.
#[async_trait]
pub trait ValueFetcher: Send + Sync {
    /// Loads the bytes of a blob and verifies them against their digest.
    async fn load(&self, reference: &BlobRef) -> Result<Vec<u8>, LoadError>;
}

/// A failed load of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    pub message: String,
    /// Whether a retry may succeed.
    pub is_passing: bool,
}

/// Values that one command has loaded, shared by all of its iterations.
pub(crate) struct CommandValues<'a> {
    values: &'a dyn ValueFetcher,
    known: Mutex<HashMap<Arc<str>, Data>>,
}

impl<'a> CommandValues<'a> {
    pub(crate) fn new(values: &'a dyn ValueFetcher) -> Self {
        Self { values, known: Mutex::default() }
    }

    /// Returns the referenced value, or the reason it cannot be read. Retries while the blob store
    /// is unavailable. Returns `None` if the command is cancelled meanwhile.
    pub(crate) async fn find(
        &self,
        place: &ValueRef,
        cancel: &CancellationToken,
    ) -> Option<Result<Data, String>> {
        let ValueRef::Blob(reference) = place else {
            return Some(Err("only the control plane reads the log".to_owned()));
        };
        // The lock covers the load, so that concurrent iterations load a value only once.
        let mut known = self.known.lock().await;
        if let Some(data) = known.get(&reference.digest) {
            return Some(Ok(data.clone()));
        }
        let bytes = match self.load(reference, cancel).await? {
            Ok(bytes) => bytes,
            Err(why) => return Some(Err(why)),
        };
        // Parsing a large text takes long enough to block the other tasks on this thread.
        let read = tokio::task::spawn_blocking(move || {
            serde_json::from_slice(&bytes).map(from_json_owned).map_err(|error| error.to_string())
        });
        let result = read.await.unwrap_or_else(|_| Err("it could not be read".to_owned()));
        if let Ok(data) = &result {
            known.insert(reference.digest.clone(), data.clone());
        }
        Some(result)
    }

    async fn load(
        &self,
        reference: &BlobRef,
        cancel: &CancellationToken,
    ) -> Option<Result<Vec<u8>, String>> {
        let mut delays = RETRY.delays();
        loop {
            let loaded = tokio::select! {
                loaded = self.values.load(reference) => loaded,
                () = cancel.cancelled() => return None,
            };
            match loaded {
                Ok(bytes) => return Some(Ok(bytes)),
                Err(error) if !error.is_passing => return Some(Err(error.message)),
                Err(error) => warn!(error = %error.message, "failed to load value, retrying"),
            }
            tokio::select! {
                () = tokio::time::sleep(delays.next_delay()) => {}
                () = cancel.cancelled() => return None,
            }
        }
    }
}
