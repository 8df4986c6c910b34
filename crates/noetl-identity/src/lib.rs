//! Identity of a process among those that share a store: its leased machine ID, and the IDs it
//! mints with it.

mod identity;
mod ids;

pub use identity::{IdentityError, LEASES, ProcessIdentity, alive_after, is_gone, lease_of};
pub use ids::{IdGenerator, entropy};
