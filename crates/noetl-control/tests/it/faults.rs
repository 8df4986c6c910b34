use std::sync::Arc;
use std::time::Duration;

use noetl_control::Options;
use noetl_engine::{Input, Wake};
use noetl_journal::{StartError, StartRequest, SubmitError};
use noetl_model::Fact;
use noetl_model::event::ParkReason;
use noetl_store::{ExecutionStatus, StoreError};
use noetl_test_app::{CommitFault, FaultyStore};

use crate::plane::{Gate, TestPlane, chain, count};

const STEPS: usize = 4;

/// Whatever happens to one commit, the execution ends as if nothing had, and no step's result is
/// recorded twice.
#[tokio::test(start_paused = true)]
async fn a_single_failed_commit_does_not_change_the_outcome() {
    for fault in [CommitFault::Refused, CommitFault::Lost, CommitFault::AnswerLost] {
        for number in 2..=8 {
            let store = Arc::new(FaultyStore::default());
            let plane = TestPlane::open(&store, 4, &Gate::new()).await;
            let catalog = Some(plane.register(&chain(STEPS)).await);
            store.fail_commit(store.commits() + number, fault);
            let request = StartRequest { catalog, ..StartRequest::default() };
            let executions = &plane.control.journal.executions;
            let id = executions.start(&plane.tenant, request).await.unwrap().execution;
            let row = plane.finished(id).await;
            assert_eq!(row.status, ExecutionStatus::Completed, "{fault:?} {number}");
            let log = plane.log(id).await;
            let done = count(&log, |fact| matches!(fact, Fact::StepExited { .. }));
            let answers = count(&log, |fact| matches!(fact, Fact::CallDone { .. }));
            assert_eq!((done, answers), (STEPS, STEPS), "{fault:?} {number}");
            plane.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_with_a_lost_response_is_not_repeated() {
    for fault in [CommitFault::AnswerLost, CommitFault::Lost] {
        let store = Arc::new(FaultyStore::default());
        let plane = TestPlane::open(&store, 4, &Gate::new()).await;
        let catalog = Some(plane.register(&chain(2)).await);
        store.fail_commit(1, fault);
        let request = StartRequest { catalog, ..StartRequest::default() };
        let executions = &plane.control.journal.executions;
        let id = executions.start(&plane.tenant, request).await.unwrap().execution;
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed, "{fault:?}");
        let filter = noetl_store::ExecutionFilter { limit: 10, ..Default::default() };
        let all = executions.list(&plane.tenant, &filter).await.unwrap();
        assert_eq!(all.len(), 1, "{fault:?}");
        plane.close().await;
    }
}

/// A start whose response was lost is decided again, with new command IDs. An input for a stored
/// command meets this state before the store reports the repeat, and must not be lost.
#[tokio::test(start_paused = true)]
async fn an_input_during_a_repeated_start_is_decided_again() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 4, &Gate::new()).await;
    let steps = "  - {step: a, tool: {kind: wait, seconds: 3600}}\n";
    let catalog = Some(plane.register(steps).await);
    let commits = store.commits();
    store.fail_commit(commits + 1, CommitFault::AnswerLost);
    store.block_commits_from(commits + 2);
    let request = StartRequest { catalog, ..StartRequest::default() };
    let (journal, executions) = {
        let service = &plane.control.journal;
        (service.journal.clone(), service.executions.clone())
    };
    let (starts, tenant) = (executions.clone(), plane.tenant.clone());
    let started = tokio::spawn(async move { starts.start(&tenant, request).await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(store.commits(), commits + 2, "the start is decided again");

    let filter = noetl_store::ExecutionFilter { limit: 10, ..Default::default() };
    let id = executions.list(&plane.tenant, &filter).await.unwrap()[0].id;
    let log = plane.log(id).await;
    let wake = log.iter().find_map(|event| match &event.fact {
        Fact::CommandParked { command, on: ParkReason::Until(at), .. } => {
            Some(Wake { command: *command, at: *at })
        }
        _ => None,
    });
    let wake = Input::Wake(wake.expect("a parked command"));
    let woken = tokio::spawn(async move { journal.submit(id, wake).await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    store.block_commits(false);

    assert_eq!(started.await.unwrap().unwrap().execution, id);
    assert!(!woken.await.unwrap().unwrap().events.is_empty(), "the input was lost");
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_rejected_by_the_store_leaves_no_rows() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 4, &Gate::new()).await;
    let catalog = Some(plane.register(&chain(2)).await);
    store.fail_commit(1, CommitFault::Refused);
    let request = StartRequest { catalog, ..StartRequest::default() };
    let executions = &plane.control.journal.executions;
    let refused = executions.start(&plane.tenant, request).await.unwrap_err();
    assert!(
        matches!(&refused, StartError::Submit(SubmitError::Store(error))
            if matches!(**error, StoreError::Backend { .. })),
        "{refused:?}"
    );
    let filter = noetl_store::ExecutionFilter { limit: 10, ..Default::default() };
    assert_eq!(executions.list(&plane.tenant, &filter).await.unwrap(), []);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_temporary_store_outage_delays_and_loses_nothing() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 4, &gate).await;
    let id = plane
        .start(
            "  - {step: a, tool: {kind: shell, command: x}, next: {arcs: [{step: b}]}}\n  \
             - {step: b, tool: {kind: noop}}\n",
        )
        .await;
    gate.begun(1).await;
    store.set_down(true);
    gate.open.add_permits(1);
    let mut trouble = plane.control.journal.watch.last_commit_error();
    trouble.wait_for(Option::is_some).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    store.set_down(false);
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    assert!(plane.control.journal.watch.last_commit_error().borrow().is_none(), "it works again");
    let log = plane.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandExpired { .. })), 0);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn states_evicted_from_memory_are_reloaded() {
    let store = Arc::new(FaultyStore::default());
    let options = Options { slots: 4, cache_bytes: 1, ..Options::default() };
    let plane = TestPlane::with(&store, options, &Gate::new()).await;
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(plane.start(&chain(20)).await);
    }
    for id in ids {
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
        plane.log(id).await;
    }
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_survives_a_lost_commit() {
    for fault in [CommitFault::Refused, CommitFault::Lost, CommitFault::AnswerLost] {
        let store = Arc::new(FaultyStore::default());
        let gate = Gate::new();
        let plane = TestPlane::open(&store, 4, &gate).await;
        let id = plane.start("  - {step: a, tool: {kind: shell, command: x}}\n").await;
        gate.begun(1).await;
        let waiter = plane.finished(id);
        store.fail_commit(store.commits() + 1, fault);
        gate.open.add_permits(1);
        assert_eq!(waiter.await.status, ExecutionStatus::Completed, "{fault:?}");
        let log = plane.log(id).await;
        let issued = count(&log, |fact| matches!(fact, Fact::CommandIssued(_)));
        assert_eq!(issued, 1, "{fault:?}: the tool ran once");
        plane.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn uncommitted_decisions_get_no_response() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 1, &gate).await;
    let id = plane.start("  - {step: a, tool: {kind: shell, command: x}}\n").await;
    gate.begun(1).await;
    store.block_commits(true);
    store.fail_commit(store.commits() + 1, CommitFault::Refused);
    let cancel = || {
        let (control, tenant) = (plane.control.clone(), plane.tenant.clone());
        tokio::spawn(async move { control.journal.executions.cancel(&tenant, id, None).await })
    };
    let first = cancel();
    // The paused clock advances only when all tasks wait: the first input is in flight when the
    // second is decided.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let second = cancel();
    tokio::time::sleep(Duration::from_millis(1)).await;
    store.block_commits(false);
    assert!(matches!(first.await.unwrap(), Err(SubmitError::Store(_))));
    // Not "it is cancelled already": it is not, so this one is decided again and cancels it.
    second.await.unwrap().unwrap();
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Cancelled);
    plane.close().await;
}
