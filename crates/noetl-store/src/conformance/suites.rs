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
            a_blob_is_read_back,
            a_blob_from_a_file_has_the_same_digest,
            a_blob_is_read_in_parts,
            a_repeated_put_stores_one_blob_with_a_later_time,
            a_missing_blob_is_reported_as_missing,
            a_blob_of_another_length_is_damaged,
            a_touch_changes_only_the_time,
            a_blob_is_removed_only_if_unchanged_since_listed,
            blobs_are_listed_in_pages_by_digest,
            concurrent_puts_of_one_blob_leave_it_intact,
            garbage_collection_removes_old_unreferenced_blobs,
            a_blob_put_during_collection_is_not_lost,
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
                a_lease_expires_at_its_end,
                a_renewed_lease_lasts_from_its_renewal,
                a_timer_is_ready_at_its_time_and_after_its_claim_expires,
                an_outbox_claim_expires_after_its_lease,
                a_failed_row_of_the_outbox_waits_for_its_delay,
                a_published_row_of_the_outbox_is_purged_at_its_age,
                a_runtime_is_stale_without_a_heartbeat,
                a_reservation_lasts_for_its_window,
                a_subscription_records_its_last_change,
                a_schedule_is_ready_at_its_time,
                every_table_is_purged_by_its_own_window,
                an_execution_is_purged_after_its_window,
                a_claim_of_a_remote_worker_is_renewed_after_its_start,
                a_lease_of_a_remote_worker_that_never_starts_expires,
                only_leases_renewed_by_worker_name_have_a_limit,
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
