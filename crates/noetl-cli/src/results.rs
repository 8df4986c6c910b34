//! Selects the blob store for large results.

use std::sync::Arc;

use noetl_blobs::BlobLocation;
use noetl_store::{Blobs, SystemClock};

use crate::error::{CliError, ErrorKind};
use crate::settings::{setting, settings};

/// Variable with the location: `db:`, `file:///directory`, or `s3://bucket/prefix`.
const RESULTS: &str = "NOETL_RESULTS_URL";

/// Opens the configured blob store, or returns `None` if blobs are stored in the database.
pub(crate) fn place() -> Result<Option<Arc<dyn Blobs>>, CliError> {
    let Some(url) = setting(RESULTS) else { return Ok(None) };
    let place: BlobLocation = url.parse().map_err(|error| {
        CliError::new(ErrorKind::Config, format!("{RESULTS}: {error}"))
            .hint("use db:, file:///a/directory or s3://bucket/prefix")
    })?;
    let aws = settings().filter(|(name, _)| name.starts_with("AWS_"));
    let opened = noetl_blobs::open(&place, aws, Arc::new(SystemClock));
    let opened = opened.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    Ok(opened.map(|blobs| -> Arc<dyn Blobs> { Arc::new(blobs) }))
}
