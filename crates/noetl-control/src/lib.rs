//! Assembles a control plane from its services, and runs the tasks that concern all of them.
//!
//! [`ControlPlane`] has one field for each group of services. Each group is a crate: its services
//! take the store traits and the services below them, and no crate depends on a particular
//! database, bus, or HTTP route.

mod measure;
mod options;
mod retention;
mod service;

pub use noetl_journal::OpenError;
pub use options::Options;
pub use retention::{PurgeError, Purged, purge};
pub use service::ControlPlane;
