//! Nothing is minted by a process whose machine number may be another's by now.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{Control, Options, SubscriptionError};
use noetl_model::Tenant;
use noetl_store::{MemoryStore, SystemClock};

const DOCUMENT: &str = "\
apiVersion: noetl.io/v1
kind: Subscription
metadata: {path: tests/orders}
spec: {source: nats, mode: pull, dispatch: {playbook: tests/greet}}
";

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the thread is to stand still, and all on it")]
async fn a_process_that_stood_still_past_its_lease_mints_nothing() {
    let lease = Duration::from_millis(200);
    let options = Options { slots: 0, lease, ..Options::default() };
    let store = Arc::new(MemoryStore::new());
    let control = Control::open(options, store, Arc::new(SystemClock)).await.expect("a control");
    let tenant = Tenant::default();
    let document = DOCUMENT.to_owned();
    control.catalog.register(&tenant, document, "subscription", false).await.expect("an entry");
    // Everything stands still, the renewal of the lease too.
    std::thread::sleep(lease * 3);
    let refused = control.subscriptions.register(&tenant, "tests/orders").await;
    assert!(matches!(refused, Err(SubscriptionError::Store(_))), "{refused:?}");
    assert!(control.intake.ready().is_err());
    // Once the number is its own again, it goes on.
    let mut registered = control.subscriptions.register(&tenant, "tests/orders").await;
    while registered.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        registered = control.subscriptions.register(&tenant, "tests/orders").await;
    }
    control.close().await;
}
