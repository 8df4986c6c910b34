//! Maps the name of a source kind to its factory.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_egress::EgressPolicy;

use crate::kafka::Kafka;
use crate::mqtt::Mqtt;
use crate::nats::Nats;
use crate::postgres::Postgres;
use crate::pubsub::Pubsub;
use crate::redis::Redis;
use crate::source::SourceFactory;

/// Source kinds by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct SourceRegistry {
    kinds: HashMap<&'static str, Arc<dyn SourceFactory>>,
}

impl SourceRegistry {
    /// Returns all built-in kinds. Those that use HTTP obey this egress policy.
    pub fn standard(egress: EgressPolicy) -> Self {
        let servers = Self::default().with(Nats).with(Postgres).with(Redis).with(Mqtt::default());
        servers
            .with(Kafka::with_egress_policy(egress.clone()))
            .with(Pubsub::with_egress_policy(egress))
    }

    /// Adds a kind, replacing one of the same name.
    #[must_use]
    pub fn with(mut self, kind: impl SourceFactory + 'static) -> Self {
        self.kinds.insert(kind.kind(), Arc::new(kind));
        self
    }

    /// Returns the kind of this name.
    pub fn get(&self, kind: &str) -> Option<Arc<dyn SourceFactory>> {
        self.kinds.get(kind).cloned()
    }
}
