//! Transfers large values to and from the server as blobs.

use bytes::Bytes;
use noetl_api::work;
use noetl_model::event::BlobRef;
use noetl_model::{Failure, FailureKind};
use noetl_store::Digest;
use tracing::warn;

use super::link::{RETRY, ServerLink, chain};
use super::metrics::WorkerEvent;
use crate::values::LoadError;

/// Media type of large values.
const JSON: &str = "application/json";

/// Uploads bytes to the server. Retries until the server has stored them or rejects them.
pub(crate) async fn upload(link: &ServerLink, bytes: Bytes) -> Result<BlobRef, Failure> {
    let own = bytes.clone();
    let digest = tokio::task::spawn_blocking(move || Digest::of_bytes(&own).to_string()).await;
    let digest = digest.map_err(|_| unkept("its digest could not be computed"))?;
    let mut delays = RETRY.delays();
    loop {
        let call = work::put_content(&digest, bytes.clone());
        let stored = link.client.carry(call).await;
        link.note(&stored);
        match stored {
            Ok(stored) => {
                link.counters.count(WorkerEvent::Uploaded);
                return Ok(BlobRef {
                    digest: stored.digest.into(),
                    bytes: stored.bytes,
                    media_type: JSON.into(),
                });
            }
            Err(error) if matches!(error.status(), Some(400 | 413 | 422)) => {
                return Err(unkept(error));
            }
            Err(error) => warn!(error = chain(&error), "failed to upload value, retrying"),
        }
        tokio::time::sleep(delays.next_delay()).await;
    }
}

/// Downloads the bytes of a blob and verifies their digest.
pub(crate) async fn download(link: &ServerLink, reference: &BlobRef) -> Result<Vec<u8>, LoadError> {
    let lost = |message: String| LoadError { message, is_passing: false };
    let name = reference.digest.trim_start_matches("sha256:");
    let digest: Digest = name
        .parse()
        .map_err(|_| lost("the value reference is not a blob of this control plane".to_owned()))?;
    let call = work::content(name, reference.bytes);
    let brought = link.client.bring(&call, reference.bytes).await;
    link.note(&brought);
    let bytes = brought.map_err(|error| {
        let is_passing = !matches!(error.status(), Some(400 | 404 | 422));
        LoadError { message: chain(&error), is_passing }
    })?;
    let compared = tokio::task::spawn_blocking(move || (Digest::of_bytes(&bytes), bytes)).await;
    let (actual, bytes) = compared.map_err(|_| lost("it could not be compared".to_owned()))?;
    match actual == digest {
        true => Ok(bytes),
        // Truncated in transit, unless the server's copy is damaged.
        false => Err(LoadError { message: format!("{actual} came"), is_passing: true }),
    }
}

fn unkept(why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Config, format!("the value is not kept: {why}"))
}
