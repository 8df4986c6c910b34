//! The control plane with a worker, on a store that can be made to fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod announcing;
mod calls;
mod dispatch;
mod faults;
mod final_step;
mod forging;
mod lost_reports;
mod lower;
mod minting;
mod own;
mod pipelines;
mod plane;
mod publishing;
mod relay;
mod replay;
mod reported_faults;
mod restart;
mod retention;
mod schedules;
mod secrets;
mod sharded;
mod split;
mod stale;
mod system;
mod values;
mod verify;
