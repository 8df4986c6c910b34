//! The suite every event stream has to pass.

use std::sync::Arc;

use noetl_bus::conformance::Subject;
use noetl_bus::event_stream_suite;
use noetl_test_services::nats::TestNats;

use crate::{Server, connect};

async fn subject() -> Subject {
    let nats = TestNats::start();
    let stream = Arc::new(connect(nats.url()).await);
    Subject::new(stream.clone(), stream, Arc::new(Server(nats)))
}

event_stream_suite!(nats, async || subject().await);
