//! Selects the blob store for large results.

use std::sync::Arc;

use noetl_blobs::BlobLocation;
use noetl_config::tree::Results;
use noetl_store::{Blobs, SystemClock};

use crate::error::{CliError, ErrorKind};
use crate::settings;

const RESULTS: &str = "NOETL_RESULTS_URL";

/// Opens the configured blob store, or returns `None` if blobs are stored in the database.
pub(crate) fn blobs() -> Result<Option<Arc<dyn Blobs>>, CliError> {
    let Some(place) = location()? else { return Ok(None) };
    let aws = settings::variables().filter(|(name, _)| name.starts_with("AWS_"));
    let opened = noetl_blobs::open(&place, aws, Arc::new(SystemClock));
    let opened = opened.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    Ok(opened.map(|blobs| -> Arc<dyn Blobs> { Arc::new(blobs) }))
}

pub(crate) fn location() -> Result<Option<BlobLocation>, CliError> {
    let results: Results = settings::section()?;
    let Some(url) = results.url else { return Ok(None) };
    let location = url.parse().map_err(|error| {
        let name = settings::current().name_of(RESULTS);
        CliError::new(ErrorKind::Config, format!("{name}: {error}"))
            .hint("use db:, file:///a/directory or s3://bucket/prefix")
    });
    location.map(Some)
}
