//! Content in a directory or in an S3 bucket.
//!
//! [`Place`] reads the URL a program is given; [`open`] makes the place. Both places are one
//! implementation over `object_store`, so a directory and a bucket differ in nothing but where the
//! bytes are. References to content, and the decision what goes, are elsewhere.

mod generation;
mod open;
mod place;
mod store;

pub use open::{OpenError, open};
pub use place::{Place, PlaceError};
pub use store::ObjectBlobs;
