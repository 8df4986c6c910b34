//! Templates: compiled once, rendered in a [`Scope`], with typed results.
//!
//! A string that is exactly one `{{ expression }}` keeps the expression's native type. Any other
//! template renders to a string, and literals are left unchanged. Undefined is chainable and falsy;
//! null is defined and none. Work and output of a rendering are limited.
//!
//! The grammar, the values, and many filters are minijinja's. Names, operators, methods, and limits
//! are implemented here, because minijinja's virtual machine orders values of different types,
//! looks up methods before keys, and lets a single instruction allocate without bound. A template
//! sees only its scope: no file, no clock, no other template.

mod compile;
mod data;
mod entropy;
mod error;
mod eval;
mod exec;
mod guard;
mod json;
mod keychain;
mod library;
mod limit;
mod listed;
mod loaded;
mod mention;
mod nested;
mod object;
mod ops;
mod path;
mod program;
mod reference;
mod scope;
mod template;
#[cfg(test)]
mod tests;
mod value_ref;

pub use data::{Data, truthy};
pub use entropy::Entropy;
pub use error::{RenderError, SyntaxError};
pub use guard::Guard;
pub use json::{from_json, from_json_owned, to_json};
pub use keychain::KeychainNames;
pub use listed::items_of;
pub use loaded::{LoadedValues, ValueLoader};
pub use mention::{Mention, MentionSuffix};
pub use nested::ValueTemplate;
pub use reference::{blob_of_ref, is_reference, result_ref};
pub use scope::{ExecutionIdentity, Iteration, Scope, StepOutput, TaskScope};
pub use template::Template;
pub use value_ref::{
    DeferredValue, Names, ValueList, ValuePatch, ValueRef, ValueSlot, ValueSource, exact_json,
};
