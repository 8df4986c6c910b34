//! Places for content, from outside.

mod bucket;
mod directory;
