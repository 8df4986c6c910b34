//! Connections that are lost and established again.

use std::sync::Arc;
use std::time::Duration;

use noetl_store::{MemoryStore, StoreClock};
use noetl_test_app::{SimClock, TestApp};
use serde_json::json;

use super::{Peer, app, count, execute, until_status};
use crate::api::started;

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnect_keeps_held_commands_and_resends_the_others() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({"slots": 2})).await;
    let first = started(&app).await;
    let second = execute(&app, "tests/greet").await;
    let commands = peer.commands(2).await;
    drop(peer);
    // The worker did not receive the second one, and it holds one that nobody knows.
    let (held, missed) = (&commands[0], &commands[1]);
    let holds = json!({"slots": 2, "holds": [held["event_id"], 4711]});
    let (mut peer, welcome) = Peer::connect(&app, holds).await;
    assert_eq!((&welcome["keep"], &welcome["drop"]), (&json!([held["event_id"]]), &json!([4711])));
    let resent = peer.commands(1).await.remove(0);
    assert_eq!(resent, *missed);
    for command in [held, missed] {
        assert_eq!(peer.complete(command).await["status"], "accepted");
        let next = peer.commands(1).await.remove(0);
        assert_eq!(peer.complete(&next).await["status"], "accepted");
    }
    for id in [first, second] {
        until_status(&app, id, "COMPLETED").await;
        assert_eq!(
            (count(&app, id, "command.claimed").await, count(&app, id, "command.expired").await),
            (2, 0)
        );
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_whose_ack_was_lost_leads_to_its_next_command_once() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let id = started(&app).await;
    let first = peer.commands(1).await.remove(0);
    peer.send(&super::completion(&first, json!({"data": {"message": "hi"}}))).await;
    while count(&app, id, "command.claimed").await < 2 {
        tokio::task::yield_now().await;
    }
    drop(peer);
    let (mut peer, welcome) = Peer::connect(&app, json!({"holds": [first["event_id"]]})).await;
    assert_eq!(welcome["drop"], json!([first["event_id"]]), "it has ended");
    let next = peer.commands(1).await.remove(0);
    assert_eq!(peer.complete(&first).await["status"], "late");
    peer.beat(&[&next["event_id"]]).await;
    assert!(!peer.has_commands(), "it was sent");
    assert_eq!(peer.complete(&next).await["status"], "accepted");
    until_status(&app, id, "COMPLETED").await;
    assert_eq!(count(&app, id, "command.claimed").await, 2);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_connection_of_the_same_worker_replaces_the_earlier_one() {
    let app = app().await;
    let (mut earlier, _) = Peer::connect(&app, json!({})).await;
    let (mut later, _) = Peer::connect(&app, json!({})).await;
    let (error, code) = earlier.error().await;
    assert_eq!((&error["code"], code), (&json!("superseded"), 1008));
    started(&app).await;
    later.commands(1).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_of_the_same_name_holds_nothing() {
    let clock = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let app = TestApp::builder().slots(0).over(Arc::new(store)).start().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let id = started(&app).await;
    let command = peer.commands(1).await.remove(0);
    let hello = json!({"public_key": "another", "holds": [command["event_id"]]});
    let (mut restarted, _) = Peer::connect(&app, hello).await;
    clock.advance(Duration::from_secs(60));
    app.control.remote.leasing.expire_overdue().await.unwrap();
    let again = restarted.commands(1).await.remove(0);
    assert_ne!(again["event_id"], command["event_id"]);
    assert_eq!(again["meta"]["attempt"], 2);
    restarted.complete(&again).await;
    let last = restarted.commands(1).await.remove(0);
    restarted.complete(&last).await;
    until_status(&app, id, "COMPLETED").await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_commands_sent_before_the_last_received_frame_count_as_dropped() {
    let app = app().await;
    let (mut peer, _) = Peer::connect(&app, json!({})).await;
    let id = started(&app).await;
    let command = peer.commands(1).await.remove(0);
    let beat = |received: u64| json!({"type": "heartbeat", "id": received, "received": received, "commands": []});
    // As if the heartbeat had been sent before the command arrived.
    peer.send(&beat(1)).await;
    assert_eq!(peer.next("acks").await["heartbeats"], json!([{"id": 1}]));
    assert_eq!(count(&app, id, "command.expired").await, 0);
    peer.send(&beat(peer.received)).await;
    peer.next("acks").await;
    assert_eq!(count(&app, id, "command.expired").await, 1);
    let again = peer.commands(1).await.remove(0);
    assert_ne!(again["event_id"], command["event_id"]);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_lease_is_reported_as_lost() {
    let clock = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let app = TestApp::builder().slots(0).over(Arc::new(store)).start().await;
    let (mut peer, _) = Peer::connect(&app, json!({"lease_seconds": 10})).await;
    started(&app).await;
    let command = peer.commands(1).await.remove(0);
    clock.advance(Duration::from_secs(9));
    assert_eq!(peer.beat(&[&command["event_id"]]).await, json!({"id": 7}));
    clock.advance(Duration::from_secs(11));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    let ack = peer.beat(&[&command["event_id"]]).await;
    assert_eq!(ack["lost"], json!([command["event_id"]]));
    assert_eq!(peer.complete(&command).await["status"], "late");
    let again = peer.commands(1).await.remove(0);
    assert_eq!(again["meta"]["attempt"], 2);
    app.close().await;
}
