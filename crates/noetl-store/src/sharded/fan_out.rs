//! Distributes a limit over all shards, so that together they return no more than the limit.

use std::sync::atomic::Ordering;

use futures::future::join_all;

use super::{NamedStore, Sharded};
use crate::{Store, StoreError};

pub(super) struct ShardResults<T> {
    /// Results by shard number, in the order of the calls. A shard may occur more than once.
    pub(super) answers: Vec<(usize, T)>,
    /// Errors of the shards that failed. Each was called once.
    pub(super) failed: Vec<StoreError>,
}

impl<T> ShardResults<T> {
    /// Returns all results, or the error of a shard. For calls that can be repeated.
    pub(super) fn complete(self) -> Result<Vec<(usize, T)>, StoreError> {
        match self.failed.into_iter().next() {
            None => Ok(self.answers),
            Some(error) => Err(error),
        }
    }
}

impl<T> ShardResults<Vec<T>> {
    /// Returns the available work. A shard that failed does not block the work of the others; it is
    /// an error only if there is no work.
    pub(super) fn work(self) -> Result<Vec<(usize, Vec<T>)>, StoreError> {
        if self.answers.iter().all(|(_, rows)| rows.is_empty()) {
            return self.complete();
        }
        for error in &self.failed {
            let name = error.shard();
            tracing::warn!(name, %error, "failed to get work from database");
        }
        Ok(self.answers)
    }
}

impl Sharded {
    /// Requests each shard's share of `limit`, then more from those that returned their full share,
    /// until the limit is reached or no shard has more. `size` returns the size of a result.
    pub(super) async fn fan_out<'a, T, F, A>(
        &'a self,
        limit: usize,
        size: impl Fn(&T) -> usize,
        ask: A,
    ) -> ShardResults<T>
    where
        A: Fn(&'a dyn Store, usize) -> F,
        F: Future<Output = Result<T, StoreError>>,
    {
        self.fan_out_over(&self.shards.iter().collect::<Vec<_>>(), limit, size, ask).await
    }

    /// Like [`spread`](Self::spread), over these stores, numbered by index.
    pub(super) async fn fan_out_over<'a, T, F, A>(
        &'a self,
        parts: &[&'a NamedStore],
        limit: usize,
        size: impl Fn(&T) -> usize,
        ask: A,
    ) -> ShardResults<T>
    where
        A: Fn(&'a dyn Store, usize) -> F,
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut spread = ShardResults { answers: Vec::new(), failed: Vec::new() };
        let count = parts.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % count;
        let mut open: Vec<usize> = (first..count).chain(0..first).collect();
        let mut left = limit;
        while left > 0 && !open.is_empty() {
            let shares: Vec<(usize, usize)> = shares(left, &open).collect();
            // A shard without a share in this round is called first in the next.
            open = open.split_off(shares.len());
            let asked = shares.iter().map(|&(number, share)| ask(&*parts[number].store, share));
            for ((number, share), answer) in shares.iter().zip(join_all(asked).await) {
                match parts[*number].named(answer) {
                    Ok(answer) => {
                        let got = size(&answer);
                        left = left.saturating_sub(got);
                        if got >= *share {
                            open.push(*number);
                        }
                        spread.answers.push((*number, answer));
                    }
                    Err(error) => spread.failed.push(error),
                }
            }
        }
        spread
    }
}

/// Returns the share of each of the first shards: `left` divided evenly, without empty shares.
fn shares(left: usize, open: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let (each, more) = (left / open.len(), left % open.len());
    let share = move |(place, &number): (usize, &usize)| (number, each + usize::from(place < more));
    open.iter().enumerate().map(share).take_while(|(_, share)| *share > 0)
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn a_limit_is_shared_out_without_a_rest() {
        let shared = |left| shares(left, &[7, 8, 9]).collect::<Vec<_>>();
        assert_eq!(shared(1), [(7, 1)]);
        assert_eq!(shared(3), [(7, 1), (8, 1), (9, 1)]);
        assert_eq!(shared(5), [(7, 2), (8, 2), (9, 1)]);
        let all = shared(usize::MAX).iter().map(|(_, share)| share).sum::<usize>();
        assert_eq!(all, usize::MAX);
    }
}
