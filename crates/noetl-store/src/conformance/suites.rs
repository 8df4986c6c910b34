//! Smaller suites: blob stores alone, and the passage of time.

/// Cases about blob stores alone.
///
/// `blobs_suite!(name, make)` creates one test of every case in a module of this name; `make`
/// returns a fresh blob store and a value that must outlive it. `blobs_suite!(together name,
/// start)` creates one test of all cases, for a blob store behind a service that is expensive to
/// start: `start` returns a value whose `fresh` creates blob stores, or `None` to skip the test.
#[macro_export]
macro_rules! blobs_suite {
    (@list $($how:tt)*) => {
        $crate::blobs_suite! { @$($how)*;
            content_is_read_back,
            content_from_a_file_is_the_same_content,
            content_is_read_part_by_part,
            the_same_content_is_kept_once_and_with_a_later_time,
            missing_content_is_reported_as_missing,
            content_of_another_length_is_damaged,
            a_touch_makes_the_time_later_and_changes_nothing_else,
            content_is_removed_only_if_unchanged_since_listed,
            content_is_listed_in_pages_in_the_order_of_digests,
            concurrent_puts_of_one_content_leave_it_whole,
            garbage_collection_removes_old_unreferenced_blobs,
            content_put_while_it_is_collected_is_not_lost,
            a_failed_removal_does_not_stop_the_others,
        }
    };
    (@apart $make:expr; $($case:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $case() {
            let (blobs, _kept) = ($make)().await;
            $crate::conformance::blobs::$case(blobs).await;
        }
    )*};
    (@together $name:ident, $start:expr; $($case:ident),* $(,)?) => {
        #[tokio::test]
        async fn $name() {
            let Some(service) = ($start)().await else { return };
            $(
                // The test's output names the case that failed: the last one.
                println!("{}", stringify!($case));
                $crate::conformance::blobs::$case(service.fresh().await).await;
            )*
        }
    };
    (together $name:ident, $start:expr) => {
        $crate::blobs_suite! { @list together $name, $start }
    };
    ($name:ident, $make:expr) => {
        mod $name {
            #[allow(
                unused_imports,
                reason = "what makes the subject may need nothing from outside"
            )]
            use super::*;

            $crate::blobs_suite! { @list apart $make }
        }
    };
}

/// Creates one test of every case about the passage of time, in a module of this name, each with a
/// [`Subject`](crate::conformance::Subject) that has its own clock.
#[macro_export]
macro_rules! lapse_suite {
    ($name:ident, $make:expr) => {
        mod $name {
            #[allow(
                unused_imports,
                reason = "what makes the subject may need nothing from outside"
            )]
            use super::*;

            $crate::lapse_cases! { $make,
                a_lease_lives_until_its_end_and_not_at_it,
                a_renewed_lease_lives_from_the_renewal_on,
                a_row_is_ready_at_its_time_and_when_its_lease_is_over,
                a_claim_of_the_outbox_is_over_after_its_lease,
                a_failed_row_of_the_outbox_waits_for_its_delay,
                a_published_row_of_the_outbox_is_purged_at_its_age,
                a_runtime_is_stale_without_a_heartbeat,
                a_reserved_message_counts_for_its_window,
                a_subscription_records_its_last_change,
                a_schedule_is_ready_at_its_time,
                every_table_is_purged_by_its_own_window,
                an_execution_is_purged_after_its_window,
                a_remote_worker_starts_in_time_and_renews_its_lease,
                a_remote_worker_that_never_starts_is_lost,
                a_worker_known_by_name_holds_to_a_limit_and_one_that_renews_without,
                a_lower_limit_ends_leases_of_workers_that_do_not_name_commands,
            }
        }
    };
}

/// List of cases behind [`lapse_suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! lapse_cases {
    ($make:expr, $($case:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $case() {
            use $crate::conformance::{clock, lapse};
            let clock = std::sync::Arc::new(clock::HandClock::default());
            let subject: $crate::conformance::Subject =
                ($make)($crate::StoreClock::new(clock.clone())).await;
            lapse::$case(subject.store(), &clock).await;
        }
    )*};
}
