//! Blob storage in a directory or an S3 bucket.
//!
//! [`Place`] parses the URL that configures the location; [`open`] opens the store. Directory and
//! bucket share one implementation over `object_store` and behave the same. This crate neither
//! records references to blobs nor decides which blobs to delete.

mod generation;
mod open;
mod place;
mod store;

pub use open::{OpenError, open};
pub use place::{Place, PlaceError};
pub use store::ObjectBlobs;
