//! Minimum rate of request bodies.
//!
//! A body may keep its receiver waiting for a grace period, plus the time that the received bytes
//! take at the minimum rate, but never beyond its deadline. Only time spent waiting for the sender
//! counts; a slow handler doesn't use up the sender's time.

use std::error::Error;
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::http::StatusCode;
use futures::stream::{StreamExt as _, unfold};
use tokio::time::Instant;

use crate::error::ApiError;

/// Grace period before the minimum rate applies: several round trips over a bad connection.
const GRACE: Duration = Duration::from_secs(5);

/// Limits on how long a body may keep its receiver waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Maximum wait for the whole body.
    pub(crate) deadline: Duration,
    /// Maximum wait before the minimum rate applies.
    pub(crate) grace: Duration,
    /// Minimum rate in bytes per second. 0 means no minimum.
    pub(crate) min_rate: u64,
}

/// Error of a body that arrived too slowly.
#[derive(Debug, thiserror::Error)]
#[error("request body arrives too slowly; send at least {min_rate} bytes per second")]
pub(crate) struct TooSlow {
    min_rate: u64,
}

impl From<&TooSlow> for ApiError {
    fn from(slow: &TooSlow) -> Self {
        Self::with_status(StatusCode::REQUEST_TIMEOUT, "body_too_slow", slow.to_string())
    }
}

impl Pace {
    /// Creates limits with the default grace period.
    pub(crate) fn new(deadline: Duration, min_rate: u64) -> Self {
        Self { deadline, grace: GRACE, min_rate }
    }

    /// Returns the maximum total wait once `received` bytes have arrived.
    fn allowed(self, received: u64) -> Duration {
        if self.min_rate == 0 {
            return self.deadline;
        }
        let millis = u128::from(received) * 1000 / u128::from(self.min_rate);
        let earned = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        self.grace.saturating_add(earned).min(self.deadline)
    }

    /// Wraps a body so that it fails with [`TooSlow`] if its sender falls behind.
    pub(crate) fn apply(self, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        let pieces = body.into_data_stream();
        let paced = Paced { pieces, pace: self, received: 0, waited: Duration::ZERO };
        Body::from_stream(unfold(Some(paced), |paced| async move {
            let mut paced = paced?;
            let piece = paced.next().await?;
            let rest = piece.is_ok().then_some(paced);
            Some((piece, rest))
        }))
    }
}

struct Paced {
    pieces: BodyDataStream,
    pace: Pace,
    received: u64,
    waited: Duration,
}

impl Paced {
    /// Returns the next chunk, or `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        let left = self.pace.allowed(self.received).saturating_sub(self.waited);
        let began = Instant::now();
        let next = tokio::time::timeout(left, self.pieces.next()).await;
        self.waited += began.elapsed();
        match next {
            Err(_) => Some(Err(TooSlow { min_rate: self.pace.min_rate }.into())),
            Ok(None) => None,
            Ok(Some(Err(error))) => Some(Err(error.into())),
            Ok(Some(Ok(piece))) => {
                self.received += piece.len() as u64;
                Some(Ok(piece))
            }
        }
    }
}

/// Returns the [`TooSlow`] among the sources of an error.
pub(crate) fn too_slow<'a>(failure: &'a (dyn Error + 'static)) -> Option<&'a TooSlow> {
    let causes = std::iter::successors(Some(failure), |failure| (*failure).source());
    causes.into_iter().find_map(|failure| failure.downcast_ref())
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    const PACE: Pace =
        Pace { deadline: Duration::from_secs(20), grace: Duration::from_secs(5), min_rate: 100 };

    /// Sends pieces of `bytes` bytes, one every `every`, and returns the bytes that were read and
    /// whether the body was given up as too slow.
    async fn read(pieces: usize, bytes: usize, every: Duration) -> (usize, bool) {
        let sent = stream::unfold(0, move |sent| async move {
            if sent == pieces {
                return None;
            }
            tokio::time::sleep(every).await;
            Some((Ok::<_, std::io::Error>(vec![b'x'; bytes]), sent + 1))
        });
        let mut body = PACE.apply(Body::from_stream(sent)).into_data_stream();
        let mut read = 0;
        while let Some(piece) = body.next().await {
            match piece {
                Ok(piece) => read += piece.len(),
                Err(error) => return (read, too_slow(&error).is_some()),
            }
        }
        (read, false)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_at_the_minimum_rate_is_read_whole() {
        assert_eq!(read(15, 100, Duration::from_secs(1)).await, (1500, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_below_the_minimum_rate_is_given_up_after_the_grace_period() {
        // Five seconds of grace, and a tenth of a second for each ten bytes.
        assert_eq!(read(100, 10, Duration::from_secs(1)).await, (50, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_arrives_is_given_up() {
        assert_eq!(read(1, 1, Duration::from_secs(3600)).await, (0, true));
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_carries_a_body_past_its_deadline() {
        assert_eq!(read(100, 1000, Duration::from_secs(1)).await, (20_000, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_does_not_make_its_sender_slow() {
        let sent = stream::iter((0..10).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 1])));
        let mut body = PACE.apply(Body::from_stream(sent)).into_data_stream();
        let mut read = 0;
        while let Some(piece) = body.next().await {
            read += piece.expect("a piece").len();
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        assert_eq!(read, 10);
    }
}
