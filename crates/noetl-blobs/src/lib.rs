//! Blob storage in a directory or an S3 bucket.
//!
//! [`BlobLocation`] parses the URL that configures the location; [`open`] opens the store. Directory and
//! bucket share one implementation over `object_store` and behave the same. This crate neither
//! records references to blobs nor decides which blobs to delete.

mod location;
mod object_key;
mod open;
mod store;

pub use location::{BlobLocation, BlobLocationError};
pub use open::{OpenError, open};
pub use store::ObjectBlobs;
