//! Conformance suite: cases that every store must pass.
//!
//! The tests of a store contain one line, `conformance_suite!(name, async || Subject::new(store))`,
//! which creates a test of every case, each on a fresh store that was opened with its outbox
//! enabled ([`outbox_on`]). The name of a case states a guarantee of the traits; [`story`] creates
//! the executions it needs. [`twin::compare`] applies one random history to two stores and compares
//! every read.
pub mod append;
pub mod appends;
pub mod blobs;
pub mod catalog;
pub mod clock;
pub mod commands;
pub mod credentials;
pub mod cursors;
pub mod due;
pub mod executions;
pub mod grants;
pub mod holdings;
pub mod imports;
mod keeping_suite;
pub mod keychain;
pub mod lapse;
pub mod leases;
pub mod logs;
pub mod objects;
pub mod outbox;
pub mod payload;
pub mod references;
pub mod results;
pub mod retention;
pub mod rows;
pub mod runtimes;
pub mod schedules;
pub mod sealed_rows;
pub mod secret_audit;
mod seed;
pub mod snapshots;
pub mod story;
mod subject;
pub mod subscription_logs;
pub mod subscriptions;
mod suites;
pub mod tail;
pub mod tokens;
pub mod transient;
pub mod twin;
pub mod twin_keeping;

pub use seed::seeds;
pub use subject::{Subject, outbox_on};

/// Creates one test of every case, in a module of this name, each with its own [`Subject`].
#[macro_export]
macro_rules! conformance_suite {
    ($name:ident, $make:expr) => {
        mod $name {
            #[allow(
                unused_imports,
                reason = "what makes the subject may need nothing from outside"
            )]
            use super::*;

            $crate::conformance_cases! { $make,
                append::{
                    every_fact_is_read_back,
                    a_read_starts_after_a_sequence_number_and_ends_at_its_limit,
                    an_unknown_execution_has_an_empty_log,
                    an_append_behind_the_log_is_a_conflict_and_writes_nothing,
                    an_append_ahead_of_the_log_is_a_conflict_and_writes_nothing,
                    an_append_on_a_log_of_the_same_length_but_other_events_is_a_conflict,
                    a_locked_execution_is_read_and_appended_to,
                    an_append_to_an_unknown_execution_is_a_conflict_at_the_start,
                    one_conflict_never_fails_its_batch,
                    items_for_one_execution_chain_in_one_batch,
                    an_item_after_a_conflict_is_checked_against_the_log,
                    a_start_repeated_with_its_key_changes_nothing,
                    a_start_with_another_key_and_a_used_id_is_rejected,
                    a_start_by_another_tenant_with_a_used_id_is_rejected,
                    two_starts_in_one_batch_are_one_start,
                    an_append_with_a_gap_rejects_the_batch,
                    an_append_without_events_is_rejected,
                    an_append_with_an_event_of_another_execution_is_rejected,
                    a_row_with_another_version_than_its_events_is_rejected,
                    an_end_without_a_final_status_is_rejected,
                    a_second_command_with_one_id_rejects_the_batch,
                    an_empty_batch_changes_nothing,
                    concurrent_appends_to_one_log_have_one_winner,
                    concurrent_batches_are_appended_in_call_order,
                    an_event_is_found_by_its_id,
                    an_event_id_is_unique_within_a_log,
                    an_execution_ends_once,
                    the_newest_id_is_the_largest_ever_appended,
                },
                appends::{
                    a_large_append_is_read_searched_and_followed_by_event,
                    late_and_overlapping_ids_of_appends_are_found_once,
                    an_imported_log_may_end_several_times,
                },
                rows::{
                    rows_are_those_of_the_events,
                    pages_of_large_rows_are_limited_by_bytes,
                    rows_are_read_in_id_order,
                    a_long_log_is_read_and_searched_by_mostly_ascending_ids,
                    a_read_of_rows_ends_at_an_id_a_time_or_a_limit,
                    reads_accept_the_smallest_and_largest_ids_and_times,
                    the_least_id_since_a_sequence_number_ignores_earlier_rows,
                    an_unknown_execution_has_no_rows,
                },
                imports::{
                    imported_rows_are_read_back_unchanged,
                    imported_executions_are_listed_and_have_no_work,
                    an_existing_row_is_a_duplicate,
                    a_native_execution_rejects_imported_rows,
                    an_imported_execution_cannot_be_driven,
                    a_subscription_rejects_imported_rows,
                    an_execution_of_another_tenant_rejects_imported_rows,
                    imported_ids_do_not_count_as_the_newest,
                    imported_rows_are_published,
                    concurrent_imports_store_every_row_once,
                },
                commands::{
                    an_issued_command_is_pending,
                    a_command_issued_and_claimed_in_one_append_is_claimed,
                    a_command_is_claimed_started_and_completed,
                    a_command_can_fail_expire_or_be_cancelled,
                    a_terminal_command_never_moves_again,
                    a_terminal_command_never_moves_again_in_one_append,
                    a_claim_after_the_start_changes_nothing,
                    a_change_of_an_unknown_command_changes_nothing,
                    commands_of_a_rejected_append_do_not_exist,
                    open_commands_are_listed_in_pages_oldest_first,
                },
                holdings::{
                    a_released_lease_is_claimed_once,
                    an_expired_lease_is_claimed_again_until_its_command_ends,
                    a_worker_renews_leases_that_it_names_and_owns,
                    leases_are_found_by_command,
                    leases_are_found_by_execution,
                    leases_renewed_by_command_are_not_renewed_by_worker_name,
                    only_remote_workers_have_leases,
                    a_command_that_waits_for_an_answer_has_no_lease,
                    a_command_claimed_with_its_issue_has_a_lease,
                    a_claim_may_declare_renewal_by_command,
                    lease_operations_are_scoped_by_tenant,
                    a_lower_limit_applies_to_workers_known_by_name,
                    concurrent_claims_never_share_an_expired_lease,
                    pending_commands_are_found_by_pool_tool_execution_and_tenant,
                },
                executions::{
                    a_row_is_read_back_unchanged,
                    start_data_of_an_execution_never_changes,
                    another_tenant_sees_nothing,
                    an_execution_records_its_tenant,
                    a_list_is_ordered_by_start_with_offset_and_limit,
                    a_list_is_filtered_by_status_path_and_catalog,
                    a_list_is_filtered_by_parent_and_start,
                    a_list_is_filtered_by_time_and_text,
                    a_path_filter_ignores_case_and_matches_every_character_literally,
                    a_finished_execution_is_not_unfinished,
                    unfinished_executions_are_listed_in_pages_in_id_order,
                    executions_of_all_tenants_are_listed_in_id_order,
                    a_finished_execution_accepts_reports,
                    executions_are_counted_by_start,
                    executions_are_counted_by_status,
                },
                catalog::{
                    a_registered_entry_is_read_back,
                    versions_count_per_path_and_tenant,
                    the_highest_version_is_returned_by_default,
                    entries_are_listed_newest_first_and_by_kind,
                    the_newest_of_a_kind_are_listed_by_path,
                    another_tenant_s_entries_do_not_exist,
                    an_entry_with_a_used_id_is_rejected,
                    concurrent_registers_get_distinct_versions,
                    a_deleted_version_is_found_by_its_id_alone,
                    only_a_tenant_s_own_path_is_deleted,
                    usage_of_a_tenant_includes_deleted_documents,
                },
                logs::{
                    lines_are_read_back_in_order_and_by_command,
                    lines_of_an_unknown_execution_are_dropped,
                    the_first_and_the_newest_lines_of_a_command_stay,
                    lost_lines_count_as_dropped,
                    concurrent_appends_share_no_number,
                    lines_are_purged_with_their_execution,
                },
                leases::{
                    a_free_lease_is_acquired_and_read_back,
                    a_live_lease_is_not_acquired_by_another_owner,
                    a_repeated_acquire_retains_the_epoch,
                    an_expired_lease_is_acquired_with_a_new_epoch,
                    a_renewal_extends_only_the_live_lease,
                    a_released_lease_is_free_and_retains_its_epoch,
                    live_leases_are_listed_by_prefix_in_byte_order,
                    the_lowest_free_machine_id_is_acquired,
                    an_owner_retains_its_machine_id,
                    concurrent_holders_get_distinct_numbers,
                    concurrent_acquires_have_one_winner,
                },
                cursors::{
                    a_cursor_only_moves_forward,
                    a_fenced_cursor_advances_only_under_the_live_lease,
                },
                tail::{
                    the_tail_returns_every_committed_row_once_and_in_order,
                    a_page_starts_after_a_position_and_ends_at_its_limit,
                    a_tail_row_has_the_columns_of_its_execution,
                    the_tail_includes_rows_of_subscriptions_and_imports,
                    the_tail_omits_rows_of_a_rejected_append,
                    a_page_of_large_rows_is_limited_by_bytes_and_never_empty,
                    positions_continue_after_a_purge,
                },
                snapshots::{
                    a_snapshot_is_read_back_byte_for_byte,
                    a_snapshot_is_never_replaced_by_an_older_one,
                    a_damaged_snapshot_is_ignored,
                    a_deleted_snapshot_can_be_saved_with_an_older_version,
                    snapshots_are_distinct_by_tenant_type_and_id,
                },
                due::{
                    a_row_is_written_with_its_append_and_read_back,
                    timers_of_later_appends_have_the_tenant_of_the_execution,
                    rows_of_a_rejected_append_do_not_exist,
                    a_delivery_reports_remaining_timers_to_their_senders,
                    the_first_of_two_rows_with_one_id_stays,
                    a_delivered_timer_is_deleted_with_the_append_that_answers_it,
                    ready_timers_are_claimed_longest_ready_first,
                    a_timer_with_an_expired_claim_is_claimed_again,
                    a_delivered_row_is_deleted_claimed_or_not,
                    a_timer_is_postponed_and_advanced,
                    concurrent_claims_never_share_a_timer,
                },
                outbox::{
                    every_event_of_a_commit_is_published_in_order,
                    a_payload_is_the_event_s_row,
                    events_of_a_rejected_append_are_not_published,
                    an_event_id_in_two_logs_is_published_for_both,
                    a_claimed_row_is_not_claimed_while_the_claim_lasts,
                    a_claim_of_large_rows_is_limited_by_bytes_and_never_empty,
                    a_published_row_is_never_claimed_again,
                    a_failed_row_is_ready_after_its_delay,
                    only_published_rows_are_purged,
                    concurrent_publishers_never_share_a_row,
                },
                runtimes::{
                    a_runtime_is_registered_and_read_back,
                    a_registered_runtime_is_updated_and_retains_its_id,
                    runtimes_are_distinct_by_tenant_kind_and_name,
                    a_runtime_s_id_is_its_own,
                    heartbeats_and_deregistrations_need_a_known_runtime,
                    stale_worker_pools_are_purged_and_others_stay,
                    concurrent_registrations_create_one_runtime,
                },
                subscription_logs::{
                    every_change_is_recorded_in_the_subscriptions_log,
                    events_of_a_subscription_are_published,
                    a_runtime_event_is_recorded_once_and_changes_no_state,
                    concurrent_events_of_a_subscription_have_distinct_sequence_numbers,
                    subscriptions_are_counted_by_state,
                },
                subscriptions::{
                    a_registered_subscription_is_read_back,
                    a_path_has_one_subscription_until_it_is_deactivated,
                    a_subscription_s_id_is_its_own,
                    concurrent_registrations_of_a_path_get_one_id,
                    every_action_is_accepted_only_from_its_states,
                    a_subscription_changes_only_from_the_expected_state,
                    a_replaced_subscription_stays_deactivated,
                    a_message_is_reserved_once,
                    a_message_outside_its_window_is_new,
                    a_reservation_is_released_only_by_its_execution,
                    only_old_reservations_are_pruned,
                    concurrent_reservations_have_one_winner,
                },
                schedules::{
                    a_schedule_is_read_back_unchanged,
                    an_updated_schedule_retains_its_history,
                    a_schedule_of_another_tenant_does_not_exist,
                    due_schedules_are_claimed_oldest_first,
                    a_run_is_fixed_once_and_the_schedule_stays_ready,
                    a_schedule_advances_once_per_run,
                    a_removed_schedule_is_gone,
                    the_next_run_time_ignores_disabled_schedules,
                    concurrent_runners_agree_on_a_run,
                },
                payload::{
                    text_of_every_kind_survives,
                    a_nul_in_a_value_survives,
                    the_order_of_keys_survives,
                    a_large_payload_survives,
                    numbers_survive,
                    an_event_with_the_largest_ids_and_times_survives,
                },
                retention::{
                    an_unfinished_execution_is_not_purged_at_any_age,
                    an_execution_with_a_recent_event_stays,
                    an_execution_with_a_timer_is_not_purged,
                    an_imported_execution_is_purged_by_age_ended_or_not,
                    a_policy_without_windows_removes_nothing,
                    a_dry_run_changes_nothing_and_reports_the_same,
                    commands_of_finished_executions_are_purged_by_their_own_age,
                    a_subscription_survives_every_purge,
                    the_log_of_a_subscription_is_purged_when_it_has_ended,
                    a_partition_with_live_executions_is_not_dropped,
                    an_append_to_a_purged_log_conflicts_at_the_start,
                    events_of_purged_executions_are_still_published,
                    one_purge_removes_many_executions_and_long_logs,
                },
            }
            $crate::conformance_of_keeping! { $make }
        }
    };
}

/// List of cases behind [`conformance_suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($make:expr, $($group:ident::{$($case:ident),* $(,)?}),* $(,)?) => {$(
        mod $group {
            #[allow(
                unused_imports,
                reason = "what makes the subject may need nothing from outside"
            )]
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    let subject: $crate::conformance::Subject = ($make)().await;
                    $crate::conformance::$group::$case(subject.store()).await;
                }
            )*
        }
    )*};
}

#[cfg(test)]
mod tests {
    /// Cases of one database alone, run by the tests of each: over several, secrets that belong to
    /// an execution are in another than its log, and go when they expire.
    const ALONE: [&str; 1] = ["a_finished_execution_is_purged_completely"];

    /// A case that is in no list runs nowhere, and nothing else would say so.
    #[test]
    fn every_case_is_in_the_suite() {
        let list = concat!(
            include_str!("conformance.rs"),
            include_str!("conformance/suites.rs"),
            include_str!("conformance/keeping_suite.rs")
        );
        let groups = [
            include_str!("conformance/append.rs"),
            include_str!("conformance/commands.rs"),
            include_str!("conformance/executions.rs"),
            include_str!("conformance/catalog.rs"),
            include_str!("conformance/payload.rs"),
            include_str!("conformance/leases.rs"),
            include_str!("conformance/cursors.rs"),
            include_str!("conformance/tail.rs"),
            include_str!("conformance/snapshots.rs"),
            include_str!("conformance/due.rs"),
            include_str!("conformance/outbox.rs"),
            include_str!("conformance/runtimes.rs"),
            include_str!("conformance/subscription_logs.rs"),
            include_str!("conformance/subscriptions.rs"),
            include_str!("conformance/schedules.rs"),
            include_str!("conformance/lapse.rs"),
            include_str!("conformance/credentials.rs"),
            include_str!("conformance/keychain.rs"),
            include_str!("conformance/sealed_rows.rs"),
            include_str!("conformance/secret_audit.rs"),
            include_str!("conformance/tokens.rs"),
            include_str!("conformance/grants.rs"),
            include_str!("conformance/transient.rs"),
            include_str!("conformance/results.rs"),
            include_str!("conformance/retention.rs"),
            include_str!("conformance/objects.rs"),
            include_str!("conformance/blobs.rs"),
            include_str!("conformance/references.rs"),
        ];
        for line in groups.iter().flat_map(|group| group.lines()) {
            let Some(rest) = line.strip_prefix("pub async fn ") else {
                continue;
            };
            let name = rest.split('(').next().expect("a name");
            if ALONE.contains(&name) {
                continue;
            }
            assert!(list.contains(&format!("    {name},")), "{name} runs nowhere");
            let is_of_blobs = include_str!("conformance/blobs.rs").contains(line);
            let lists = list.matches(&format!("    {name},")).count();
            assert!(lists > usize::from(is_of_blobs), "{name} runs on some places only");
        }
    }
}
