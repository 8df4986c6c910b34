//! Counts how often memory is asked for, in a build with the feature `allocations`. It is off by
//! default because all threads count in one place, which costs what is measured.

#[cfg(feature = "allocations")]
mod counting {
    use std::alloc::System;

    use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

    #[global_allocator]
    static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

    pub(super) fn count() -> u64 {
        let stats = ALLOCATOR.stats();
        (stats.allocations + stats.reallocations) as u64
    }
}

/// The one the program has.
#[cfg(not(feature = "allocations"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often this process has asked for memory so far.
pub(crate) fn count() -> Option<u64> {
    #[cfg(feature = "allocations")]
    return Some(counting::count());
    #[cfg(not(feature = "allocations"))]
    None
}
