//! The suite every event stream has to pass.

use std::sync::Arc;

use noetl_bus::conformance::{Subject, settings};
use noetl_bus::event_stream_suite;
use noetl_testkit::nats::TestNats;

use crate::{Client, connect};

async fn subject() -> Subject {
    let nats = TestNats::start();
    let client = Arc::new(Client::new(nats.url(), &settings().name).await);
    Subject::keeping(Arc::new(connect(nats.url()).await), client, nats)
}

event_stream_suite!(nats, async || subject().await);
