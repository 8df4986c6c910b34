//! The server stops, in order or as if it crashed, and comes back.

use noetl_control::{StartError, StartRequest};
use noetl_model::Tenant;
use noetl_testkit::postgres::TestServer;

use crate::faults::plane::Plane;

async fn survives(mode: &str) {
    // Without a sync a crash of the server alone loses nothing, and the test is fast.
    let mut server = TestServer::start(&["synchronous_commit=on", "fsync=off"]);
    let plane = Plane::open(server.url()).await;
    let load = plane.load(20).await;
    for _ in 0..3 {
        server.stop(mode);
        let request = StartRequest { catalog: Some(load.catalog), ..StartRequest::default() };
        let refused = plane.control.executions.start(&Tenant::default(), request).await;
        assert!(
            matches!(refused, Err(StartError::Store(_) | StartError::Submit(_))),
            "{refused:?}"
        );
        server.start_again();
    }
    load.ends_whole(&plane, &server).await;
    plane.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_and_started_costs_time_only() {
    survives("fast").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_costs_time_only() {
    survives("immediate").await;
}
