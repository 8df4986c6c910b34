//! A control plane behind a proxy that pools by transaction.

use noetl_store::EventLog;
use noetl_store_postgres::Options;
use noetl_test_services::postgres::TestDatabase;

use crate::postgres::faults::plane::Plane;

#[tokio::test(flavor = "multi_thread")]
async fn executions_run_and_notifications_bypass_the_pooler() {
    let database = TestDatabase::new();
    // Another time zone shows whether the session settings pass the proxy.
    let name = database.url().rsplit('/').next().expect("a name").to_owned();
    database.psql(&format!("alter database {name} set timezone = 'Asia/Kolkata'"));
    let Some(url) = database.pooled_url() else { return };
    let options = Options::new(&url).expect("a URL").statement_cache(0);
    let plane = Plane::with(options.direct_url(&database.url()).expect("a URL")).await;
    while !plane.store.receives_notifications() {
        tokio::task::yield_now().await;
    }
    let load = plane.load(20).await;
    load.ends_whole(&plane, &database).await;
    plane.close().await;
}
