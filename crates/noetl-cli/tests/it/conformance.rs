//! What the language promises, point by point: one test per line of the checklist, named after its
//! id. A control plane with its worker runs in the test's process on a real SQLite store; what is
//! about processes that die runs real ones.

mod documents;
mod extent;
mod failures;
mod hand;
mod loops;
mod pipelines;
mod recovery;
mod rounds;
mod routing;
mod stage;
mod values;
