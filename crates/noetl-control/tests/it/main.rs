//! The control plane with a worker, on a store that can be made to fail.

mod dispatch;
mod faults;
mod plant;
mod restart;
