//! What a worker is told, and what it says when that is wrong.

use insta::assert_snapshot;

use super::Site;
use crate::noetl::Home;

/// What it says of a variable that it cannot use.
fn refused(name: &str, value: &str) -> String {
    let home = Home::new();
    let said = home.end_of(home.command(["worker", "--server", "http://127.0.0.1:9"]).env(name, value));
    format!("{:?} {}", said.code, said.stderr)
}

#[test]
fn variables_that_cannot_be_used_are_named() {
    assert_snapshot!(refused("NOETL_WORKER_SLOTS", "many"), @"");
    assert_snapshot!(refused("NOETL_WORKER_LISTEN", "here"), @"");
    assert_snapshot!(refused("NOETL_WORKER_LABELS", "west"), @"");
    assert_snapshot!(refused("NOETL_WORKER_GRACE_SECS", "-1"), @"");
    assert_snapshot!(refused("NOETL_WORKER_RESULT_MAX_MB", "0"), @"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_the_worker_ends_it_with_a_reason() {
    let site = Site::new(&[]);
    let base = site.client().base().to_string();
    let said = site.home.noetl(["worker", "--server", &base, "--name", "local"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_snapshot!(said.stderr, @"");
}
