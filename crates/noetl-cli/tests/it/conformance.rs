//! Conformance of the language: one test per line of the checklist, named after its ID. A control
//! plane with its worker runs in the test process on a real SQLite store; tests of crashed
//! processes run real ones.

mod documents;
mod extent;
mod failures;
mod loops;
mod manual;
mod pipelines;
mod plane;
mod recovery;
mod rounds;
mod routing;
mod values;
