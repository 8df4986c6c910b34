//! Shared code of the database tools: parsing of statements and parameters, and the format of
//! results.
//!
//! A scanner that knows only quotes and comments splits SQL into statements. The database itself
//! reports which of them return rows.

mod answer;
mod cell;
mod embedded;
mod scan;
mod script;
mod statements;

pub(crate) use answer::{Answer, column_names, size_of};
pub(crate) use cell::Cell;
pub(crate) use embedded::{File, Stop, run};
pub(crate) use scan::Dialect;
pub(crate) use script::{Params, Part, Script};
pub(crate) use statements::{Control, number_names, quoted};
