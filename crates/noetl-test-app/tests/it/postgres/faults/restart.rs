//! The server stops or crashes, and restarts.

use noetl_journal::{StartError, StartRequest};
use noetl_model::Tenant;
use noetl_test_services::postgres::TestServer;

use crate::postgres::faults::plane::Plane;

async fn survives(mode: &str) {
    // A crash of the server alone loses nothing without fsync, and the test is fast.
    let mut server = TestServer::start(&["synchronous_commit=on", "fsync=off"]);
    let plane = Plane::open(server.url()).await;
    let load = plane.load(20).await;
    for _ in 0..3 {
        server.stop(mode);
        let request = StartRequest { catalog: Some(load.catalog), ..StartRequest::default() };
        let refused = plane.control.journal.executions.start(&Tenant::default(), request).await;
        assert!(
            matches!(refused, Err(StartError::Store(_) | StartError::Submit(_))),
            "{refused:?}"
        );
        server.restart();
    }
    load.ends_whole(&plane, &server).await;
    plane.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_restart_only_delays_executions() {
    survives("fast").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_crash_only_delays_executions() {
    survives("immediate").await;
}
