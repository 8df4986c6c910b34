//! Settings of server, worker, and CLI: one tree, and the layers that its values come from.
//!
//! A setting is declared once, in [`tree`]: its key in the file, its environment variables, type,
//! default, flag, and description. From that follow the typed sections, the checks of the file, the
//! help of the flags, and the reference page. A value comes from the highest layer that has one:
//! defaults, files, environment, flags.
//!
//! This crate reads the files of [`Lookup`] and nothing else: the caller passes the environment and
//! the flags. It knows no argument parser and no other crate of the workspace.

mod file;
mod kind;
mod layers;
mod lookup;
mod mask;
mod problem;
pub mod reference;
mod secret;
mod setting;
mod suggest;
pub mod tree;
mod unknown;

pub use file::FileLayer;
pub use kind::{Kind, ParsedValue, RawValue};
pub use layers::{Effective, ResolvedValue, Settings};
pub use lookup::{FILE_NAME, Files, Lookup, SYSTEM_FILE};
pub use problem::{Origin, Position, Problem};
pub use secret::{MASK, Secret};
pub use setting::{Flag, Section, Setting};
pub use tree::Options;
pub use unknown::unknown_variables;

#[cfg(test)]
mod tests;
