//! Shared code of the database tools: parsing of statements and parameters, and the format of
//! results.
//!
//! A scanner that knows only quotes and comments splits SQL into statements. The database itself
//! reports which of them return rows.

mod cell;
mod embedded;
mod results;
mod scan;
mod script;
mod statements;

pub(crate) use cell::SqlCell;
pub(crate) use embedded::{DatabaseFile, StopFlag, run};
pub(crate) use results::{StatementResults, column_names, size_of};
pub(crate) use scan::Dialect;
pub(crate) use script::{Params, Script, ScriptStatement};
pub(crate) use statements::{TransactionControl, number_names, quoted};
