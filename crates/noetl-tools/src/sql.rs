//! What the database tools share: reading statements and their parameters, and the shape of the
//! answer.
//!
//! Statements are told apart by a scan that knows quotes and comments, and nothing else of SQL;
//! whether one returns rows is for the database to say.

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
