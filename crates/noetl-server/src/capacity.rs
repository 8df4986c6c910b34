//! State behind the limits on requests and streams. The middleware that applies them is in
//! [`http`](crate::http).

mod places;
mod requests;
mod streams;

pub(crate) use places::{HEALTH_MAX, Places, RequestPermit};
pub(crate) use requests::RequestLimiter;
pub(crate) use streams::{StreamPermit, Streams};
