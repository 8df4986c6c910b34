//! Pool of idle hosts and interpreters, by tenant.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use noetl_model::Tenant;

/// Maximum idle entries of all tenants together. Each is one or two processes and a few megabytes.
const IDLE_MAX: usize = 64;

/// Idle entries, each of one tenant. At [`IDLE_MAX`], the one idle for longest is dropped.
#[derive(Debug)]
pub(crate) struct Pool<T>(Mutex<VecDeque<(Tenant, T)>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Pool<T> {
    /// Removes and returns the tenant's most recently used entry. Drops entries that are not
    /// usable.
    pub(crate) fn take(&self, tenant: &Tenant, is_usable: impl Fn(&T) -> bool) -> Option<T> {
        loop {
            let connection = {
                let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let at = idle.iter().rposition(|(owner, _)| owner == tenant)?;
                idle.remove(at)
            };
            match connection {
                Some((_, one)) if is_usable(&one) => return Some(one),
                Some(_) => {}
                None => return None,
            }
        }
    }

    /// Adds an entry. Beyond [`IDLE_MAX`], the one idle for longest is dropped.
    pub(crate) fn put(&self, tenant: &Tenant, one: T) {
        let dropped = {
            let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push_back((tenant.clone(), one));
            if idle.len() > IDLE_MAX { idle.pop_front() } else { None }
        };
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_connections_are_never_reused_by_another_tenant() {
        let (ours, theirs) = (Tenant::new("ours"), Tenant::new("theirs"));
        let pool = Pool::default();
        pool.put(&ours, 1);
        pool.put(&ours, 2);
        assert_eq!(pool.take(&theirs, |_| true), None);
        assert_eq!(pool.take(&ours, |one| *one != 2), Some(1));
        assert_eq!(pool.take(&ours, |_| true), None);
    }

    #[test]
    fn the_longest_idle_connection_is_dropped_beyond_the_limit() {
        let (first, later) = (Tenant::new("first"), Tenant::new("later"));
        let pool = Pool::default();
        pool.put(&first, 0);
        for one in 1..=IDLE_MAX {
            pool.put(&later, one);
        }
        assert_eq!(pool.take(&first, |_| true), None);
        assert_eq!(pool.take(&later, |_| true), Some(IDLE_MAX));
    }
}
