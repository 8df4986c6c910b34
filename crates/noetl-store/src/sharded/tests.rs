//! The suite on several stores in memory, and what only several stores can get wrong.

mod routing;

use std::sync::Arc;

use super::Sharded;
use crate::conformance::{Subject, outbox_on};
use crate::{MemoryStore, Store, StoreClock};

fn memory(count: usize, clock: &StoreClock) -> Vec<Arc<dyn Store>> {
    let make = |_| -> Arc<dyn Store> {
        Arc::new(MemoryStore::new().with_outbox(outbox_on()).with_clock(clock.clone()))
    };
    (0..count).map(make).collect()
}

fn sharded(cluster: &Arc<dyn Store>, shards: &[Arc<dyn Store>]) -> Sharded {
    let named = |(number, shard): (usize, &Arc<dyn Store>)| (format!("s{number}"), shard.clone());
    Sharded::new(cluster.clone(), shards.iter().enumerate().map(named).collect())
}

/// With the first shard as the cluster store, as it is when none is named.
fn subject(count: usize, clock: &StoreClock) -> Subject {
    let shards = memory(count, clock);
    Subject::new(sharded(&shards[0], &shards))
}

// That ids of two executions differ is checked in one shard only: whoever mints them sees to it.
// The cases about it tell of executions 10 and 11, which are in one shard of three.
crate::conformance_suite!(on_three, async || subject(3, &StoreClock::default()));

crate::lapse_suite!(on_three_lapse, async |clock: StoreClock| subject(3, &clock));

// Of two, 10 and 11 are in different ones: what several executions have in common is then put
// together from both.
mod on_two {
    use super::*;

    crate::conformance_cases! { async || subject(2, &StoreClock::default()),
        append::{
            one_conflict_never_fails_its_batch,
            an_append_with_a_gap_rejects_the_batch,
            the_newest_id_is_the_largest_ever_appended,
        },
        commands::{
            open_commands_are_listed_in_pages_oldest_first,
        },
        holdings::{
            a_released_lease_is_claimed_once,
            a_worker_renews_leases_that_it_names_and_owns,
            leases_are_found_by_command,
            concurrent_claims_never_share_an_expired_lease,
            pending_commands_are_found_by_pool_tool_execution_and_tenant,
        },
        executions::{
            another_tenant_sees_nothing,
            a_list_is_ordered_by_start_with_offset_and_limit,
            a_list_is_filtered_by_status_path_and_catalog,
            unfinished_executions_are_listed_in_pages_in_id_order,
        },
        due::{
            a_delivery_reports_remaining_timers_to_their_senders,
            a_delivered_timer_is_deleted_with_the_append_that_answers_it,
        },
        outbox::{
            concurrent_publishers_never_share_a_row,
        },
        transient::{
            a_purge_removes_expired_variables_up_to_its_limit,
        },
        results::{
            an_expired_result_does_not_exist_and_is_purged,
        },
        references::{
            references_of_an_uncommitted_append_do_not_exist,
            references_of_a_rejected_batch_do_not_exist,
            a_blob_is_unreferenced_after_its_last_reference_is_removed,
            a_blob_referenced_after_the_scan_is_retained,
            garbage_collection_reads_all_pages,
        },
    }
}
