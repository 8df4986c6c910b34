//! Creates and registers metric families.

use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// Creates metric families. Names are constants, so any test detects an invalid one.
pub(super) struct MetricBuilder {
    pub(super) registry: Registry,
}

impl MetricBuilder {
    pub(super) fn add<C: prometheus::core::Collector + Clone + 'static>(
        &self,
        made: Result<C, prometheus::Error>,
    ) -> C {
        let family = made.expect("a valid name");
        self.registry.register(Box::new(family.clone())).expect("a name that is used once");
        family
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.add(IntCounter::new(name, help))
    }

    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Gauge {
        self.add(Gauge::new(name, help))
    }

    pub(super) fn whole_gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::new(name, help))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn histogram(&self, name: &str, help: &str) -> Histogram {
        self.add(Histogram::with_opts(HistogramOpts::new(name, help)))
    }

    /// Creates a histogram of counts instead of seconds.
    pub(super) fn sizes(&self, name: &str, help: &str) -> Histogram {
        let buckets = vec![1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
        self.add(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets)))
    }

    pub(super) fn histograms(&self, name: &str, help: &str, labels: &[&str]) -> HistogramVec {
        self.add(HistogramVec::new(HistogramOpts::new(name, help), labels))
    }
}
