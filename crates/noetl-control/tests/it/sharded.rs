use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_journal::{StartError, StartRequest, SubmitError};
use noetl_model::{ExecutionId, Tenant, shard_for};
use noetl_store::{
    BlobRefs, CommandStore, Digest, EventLog, ExecutionFilter, ExecutionStatus, ExecutionStore,
    OutboxStore, Sharded, Store, StoreError, TimerStore,
};
use noetl_test_app::FaultyStore;

use crate::plane::{Gate, TestPlane, chain};

const SHARDS: usize = 3;

/// A step that waits for the gate.
const GATED: &str = "  - {step: s, tool: {kind: shell, cmds: [x]}}\n";

fn stores() -> (Arc<FaultyStore>, Vec<Arc<FaultyStore>>) {
    (Arc::default(), (0..SHARDS).map(|_| Arc::default()).collect())
}

fn routed(cluster: &Arc<FaultyStore>, shards: &[Arc<FaultyStore>]) -> Sharded {
    let named = shards.iter().enumerate().map(|(number, shard)| {
        let shard: Arc<dyn Store> = shard.clone();
        (format!("shard-{number}"), shard)
    });
    Sharded::new(cluster.clone(), named.collect())
}

fn home(id: ExecutionId) -> usize {
    usize::try_from(shard_for(id, u32::try_from(SHARDS).unwrap())).unwrap()
}

fn home_of_failed(error: &StoreError) -> &str {
    error.shard().expect("the error names a shard")
}

/// Starts until every shard had a start, and tells what became of each.
async fn start_everywhere(
    plane: &TestPlane,
    workflow: &str,
) -> Vec<Result<ExecutionId, StartError>> {
    let catalog = Some(plane.register(workflow).await);
    let mut starts = Vec::new();
    let mut names = HashSet::new();
    while names.len() < SHARDS {
        let request = StartRequest { catalog, ..StartRequest::default() };
        let started = plane.control.journal.executions.start(&plane.tenant, request).await;
        names.insert(match &started {
            Ok(started) => format!("shard-{}", home(started.execution)),
            Err(StartError::Submit(SubmitError::Store(error))) => home_of_failed(error).to_owned(),
            Err(other) => panic!("{other:?}"),
        });
        starts.push(started.map(|started| started.execution));
    }
    starts
}

#[tokio::test(start_paused = true)]
async fn executions_run_in_their_shards_and_are_listed_together() {
    let (cluster, shards) = stores();
    let plane = TestPlane::sharded(&cluster, &shards, 4, &Gate::new()).await;
    let ids: Vec<ExecutionId> =
        start_everywhere(&plane, &chain(3)).await.into_iter().map(Result::unwrap).collect();
    for id in &ids {
        assert_eq!(plane.finished(*id).await.status, ExecutionStatus::Completed);
        for (number, shard) in shards.iter().enumerate() {
            let is_stored = shard.tenant_of(*id).await.unwrap().is_some();
            assert_eq!(is_stored, number == home(*id));
        }
    }
    let filter = ExecutionFilter { limit: 1000, ..ExecutionFilter::default() };
    let listed = plane.control.journal.executions.list(&plane.tenant, &filter).await.unwrap();
    let listed: HashSet<ExecutionId> = listed.iter().map(|row| row.id).collect();
    assert_eq!(listed, ids.into_iter().collect());
    assert_eq!(cluster.unfinished(ExecutionId::new(0), 9).await.unwrap(), []);
    plane.close().await;
}

/// There is one slot, and a command of the shard that is down has waited longest for it. The others
/// get it all the same, and when the shard is back its executions go on.
#[tokio::test(start_paused = true)]
async fn an_unavailable_shard_fails_only_its_executions() {
    let (cluster, shards) = stores();
    let gate = Gate::new();
    let plane = TestPlane::sharded(&cluster, &shards, 1, &gate).await;
    let first = plane.start(GATED).await;
    gate.begun(1).await;
    let down = (home(first) + 1) % SHARDS;
    let mut all = vec![first];
    while home(all[all.len() - 1]) != down {
        all.push(plane.start(GATED).await);
    }
    shards[down].set_down(true);
    for started in start_everywhere(&plane, GATED).await {
        match started {
            Ok(id) => all.push(id),
            Err(StartError::Submit(SubmitError::Store(error))) => {
                assert_eq!(home_of_failed(&error), format!("shard-{down}"));
                assert!(matches!(error.failure(), StoreError::Backend { .. }), "{error:?}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    gate.open.add_permits(all.len());
    let (lost, well): (Vec<ExecutionId>, Vec<ExecutionId>) =
        all.into_iter().partition(|id| home(*id) == down);
    for id in well {
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    }
    // With a free slot and some time, the shard that is down finds that its command cannot be read.
    // From then on a slot that one of the others frees goes to the third, although it waited less.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let catalog = Some(plane.register(GATED).await);
    let mut more: Vec<ExecutionId> = Vec::new();
    while more.iter().map(|id| home(*id)).collect::<HashSet<_>>().len() < SHARDS - 1 {
        let request = StartRequest { catalog, ..StartRequest::default() };
        let started = plane.control.journal.executions.start(&plane.tenant, request).await;
        more.extend(started.ok().map(|started| started.execution));
    }
    gate.open.add_permits(more.len());
    for id in more {
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    }
    shards[down].set_down(false);
    assert!(!lost.is_empty());
    for id in lost {
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    }
    plane.close().await;
}

#[tokio::test]
async fn a_list_without_an_unavailable_shard_is_an_error_naming_the_shard() {
    let (cluster, shards) = stores();
    let routed = routed(&cluster, &shards);
    shards[1].set_down(true);
    let filter = ExecutionFilter { limit: 9, ..ExecutionFilter::default() };
    let zero = ExecutionId::new(0);
    let errors = [
        routed.executions(&Tenant::default(), &filter).await.unwrap_err(),
        routed.unfinished(zero, 9).await.unwrap_err(),
        routed.open_commands(noetl_model::CommandId::new(0), 9).await.unwrap_err(),
        routed.command(noetl_model::CommandId::new(1)).await.unwrap_err(),
        routed.newest_id().await.unwrap_err(),
        routed.unreferenced(&[Digest::of_bytes(b"x")]).await.unwrap_err(),
        routed.pending().await.unwrap_err(),
        routed.claim(9).await.unwrap_err(),
        routed.claim_due(9, Duration::ZERO).await.unwrap_err(),
        routed.next_due().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(home_of_failed(&error), "shard-1");
        assert_eq!(error.to_string(), "database shard-1 is unavailable");
    }
    for number in 1..20 {
        let id = ExecutionId::new(number);
        assert_eq!(routed.tenant_of(id).await.is_err(), home(id) == 1, "{number}");
    }
}
