//! A hook between a store and its callers.

use std::any::Any;

use async_trait::async_trait;
use noetl_model::ExecutionId;
use noetl_store::{Append, Committed, LockedLog, StoreError};

/// Intercepts the calls of a process to its store. A call may be slow, fail, or never return.
#[async_trait]
pub trait CallInterceptor: Send + Sync {
    /// Runs before the store's method. An error fails the call without reaching the store.
    async fn before_call(&self, method: &'static str) -> Result<(), StoreError>;

    /// Runs after the store's method and may change its response. An error replaces the response.
    async fn after_call(
        &self,
        method: &'static str,
        response: &mut (dyn Any + Send),
    ) -> Result<(), StoreError>;

    /// Commits a batch in place of the store. Batches commit in the order of these calls.
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError>;

    /// Locks an execution for this process in place of the store.
    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError>;

    /// Waits until another process announces that it left work.
    async fn others_left_work(&self);
}

/// Implements a store trait by forwarding each method to the inner store through the interceptor.
macro_rules! forward {
    ($store_trait:ident {$(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $response:ty;
    )*}) => {
        #[async_trait]
        impl $store_trait for FaultyStore {$(
            async fn $name(&self, $($argument: $type),*) -> Result<$response, StoreError> {
                self.before_call(stringify!($name)).await?;
                let mut response = self.inner.$name($($argument),*).await?;
                self.after_call(stringify!($name), &mut response).await?;
                Ok(response)
            }
        )*}
    };
}
pub(super) use forward;
