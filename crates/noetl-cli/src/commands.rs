//! One file per verb.

pub(crate) mod check;
pub(crate) mod completions;
mod credentials;
pub(crate) mod db;
pub(crate) mod dev;
mod document;
mod neighbours;
mod payload;
pub(crate) mod run;
mod serve;
pub(crate) mod server;
