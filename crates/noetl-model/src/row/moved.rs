//! Encoding of subscription lifecycle rows.

use std::sync::Arc;

use serde::Serialize;

use super::encode::{json, row};
use super::{EventRow, SUBSCRIPTION_NODE};
use crate::Event;
use crate::event::SubscriptionTransition;

#[derive(Serialize)]
struct MovedContext<'a> {
    subscription_id: String,
    path: &'a str,
    catalog_id: String,
}

#[derive(Serialize)]
struct MovedMeta {
    emitted_at: String,
    emitter: &'static str,
    subscription_lifecycle: bool,
}

pub(super) fn subscription_moved(event: &Event, moved: &SubscriptionTransition) -> EventRow {
    let context = MovedContext {
        subscription_id: event.execution.to_string(),
        path: &moved.path,
        catalog_id: moved.catalog.to_string(),
    };
    let meta = MovedMeta {
        emitted_at: event.at.with_offset(),
        emitter: "control_plane",
        subscription_lifecycle: true,
    };
    EventRow {
        node_type: Some(Arc::from(SUBSCRIPTION_NODE)),
        context: Some(json(&context)),
        meta: Some(json(&meta)),
        ..row(event, moved.to.event_type(), &moved.path, moved.to.state())
    }
}
