//! What may stand between a store and those who call it.

use std::any::Any;

use async_trait::async_trait;
use noetl_model::ExecutionId;
use noetl_store::{Append, Committed, Held, StoreError};

/// The way from a process to its database. Calls on it may be slow, fail, or never end.
#[async_trait]
pub trait Line: Send + Sync {
    /// Before the store is asked: an error keeps the call from it.
    async fn asks(&self, what: &'static str) -> Result<(), StoreError>;

    /// Once the store has answered: an error keeps the answer from whoever asked.
    async fn answered(
        &self,
        what: &'static str,
        answer: &mut (dyn Any + Send),
    ) -> Result<(), StoreError>;

    /// Commits, in the order in which this is asked.
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError>;

    /// Takes an execution for this process alone.
    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn Held + '_>, StoreError>;

    /// Resolves when another process has said that it left work.
    async fn others_left_work(&self);
}

/// Passes every call of a seam on, over the line if there is one.
macro_rules! pass_on {
    ($seam:ident {$(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;
    )*}) => {
        #[async_trait]
        impl $seam for FrailStore {$(
            async fn $name(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
                self.asks(stringify!($name)).await?;
                let mut answer = self.inner.$name($($argument),*).await?;
                self.answered(stringify!($name), &mut answer).await?;
                Ok(answer)
            }
        )*}
    };
}
pub(super) use pass_on;
