//! Data of executions that is stored outside their event logs: large results, results and variables
//! that workers store, objects, and blobs by digest.

mod content;
mod objects;
mod results;
mod service;
mod stored_results;
mod variables;

pub use content::{CONTENT_MAX, Content, ContentError, Upload};
pub use objects::{DEAD_LETTERS, ObjectError, Objects, Suite};
pub use results::{ResultError, ResultStorage};
pub use service::ExecutionData;
pub use stored_results::{ResolveError, Resolved, ResultRequest, StoredResults, execution_in};
pub use variables::{SaveError, Variables};
