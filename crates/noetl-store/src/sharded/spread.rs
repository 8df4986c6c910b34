//! A limit that is shared out: no more than it asks for is taken from all shards together.

use std::sync::atomic::Ordering;

use futures::future::join_all;

use super::{Part, Sharded};
use crate::{Store, StoreError};

/// What the shards gave.
pub(super) struct Spread<T> {
    /// By number of the shard, in the order of asking. A shard may be there more than once.
    pub(super) answers: Vec<(usize, T)>,
    /// Shards that did not answer. Each was asked once.
    pub(super) failed: Vec<StoreError>,
}

impl<T> Spread<T> {
    /// Everything, or the error of a shard. For calls that can be repeated.
    pub(super) fn complete(self) -> Result<Vec<(usize, T)>, StoreError> {
        match self.failed.into_iter().next() {
            None => Ok(self.answers),
            Some(error) => Err(error),
        }
    }
}

impl<T> Spread<Vec<T>> {
    /// The work there is. A shard that does not answer keeps nobody from the work of the others;
    /// only when there is none is it an error.
    pub(super) fn work(self) -> Result<Vec<(usize, Vec<T>)>, StoreError> {
        if self.answers.iter().all(|(_, rows)| rows.is_empty()) {
            return self.complete();
        }
        for error in &self.failed {
            let name = error.shard();
            tracing::warn!(name, %error, "work of one database is left where it is");
        }
        Ok(self.answers)
    }
}

impl Sharded {
    /// Asks every shard for its part of `limit`, and those that had that much for more, until the
    /// limit is reached or no shard has more. `size` says how much an answer is.
    pub(super) async fn spread<'a, T, F, A>(
        &'a self,
        limit: usize,
        size: impl Fn(&T) -> usize,
        ask: A,
    ) -> Spread<T>
    where
        A: Fn(&'a dyn Store, usize) -> F,
        F: Future<Output = Result<T, StoreError>>,
    {
        self.spread_over(&self.shards.iter().collect::<Vec<_>>(), limit, size, ask).await
    }

    /// The same over these stores, numbered by their place.
    pub(super) async fn spread_over<'a, T, F, A>(
        &'a self,
        parts: &[&'a Part],
        limit: usize,
        size: impl Fn(&T) -> usize,
        ask: A,
    ) -> Spread<T>
    where
        A: Fn(&'a dyn Store, usize) -> F,
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut spread = Spread { answers: Vec::new(), failed: Vec::new() };
        let count = parts.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % count;
        let mut open: Vec<usize> = (first..count).chain(0..first).collect();
        let mut left = limit;
        while left > 0 && !open.is_empty() {
            let shares: Vec<(usize, usize)> = shares(left, &open).collect();
            // Who gets nothing this time is the first to be asked the next.
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

/// How much each of the first shards is asked for: all of `left`, evenly, and no share of nothing.
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
