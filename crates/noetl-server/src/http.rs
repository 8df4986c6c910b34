//! Middleware: origin checks, authentication, authorization, limits, extractors, and panic
//! handling.

pub(crate) mod absent;
pub(crate) mod access;
pub(crate) mod acted;
pub(crate) mod authorize;
pub(crate) mod bound;
pub(crate) mod caller;
pub(crate) mod counted;
pub(crate) mod credential;
pub(crate) mod extract;
pub(crate) mod granted;
pub(crate) mod headers;
pub(crate) mod limits;
pub(crate) mod openapi;
pub(crate) mod pace;
pub(crate) mod panics;
pub(crate) mod placeholders;
pub(crate) mod rate;
pub(crate) mod roles;
pub(crate) mod trace_context;
