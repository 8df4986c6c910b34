//! Stream and consumer settings as the server stores them.

use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{RetentionPolicy, StorageType};
use noetl_bus::EventStream;
use noetl_bus::conformance::settings;
use noetl_bus_nats::{Address, NatsStream};
use noetl_test_services::nats::TestNats;

use crate::{LONG, connect};

#[tokio::test]
async fn streams_and_consumers_have_the_requested_settings() {
    let nats = TestNats::start();
    let wanted = settings();
    connect(nats.url()).await.ensure(&wanted).await.expect("a stream");
    let context = nats.context().await;
    let stream = context.get_stream(&wanted.name).await.expect("the stream");
    let config = &stream.cached_info().config;
    assert_eq!(config.subjects, wanted.subjects);
    assert_eq!((config.storage, config.retention), (StorageType::File, RetentionPolicy::Limits));
    assert_eq!(config.duplicate_window, wanted.duplicate_window);
    assert_eq!(config.max_age, wanted.age_max);
    let reader: consumer::PullConsumer = stream.get_consumer("reader").await.expect("a consumer");
    let config = &reader.cached_info().config;
    assert_eq!(config.durable_name.as_deref(), Some("reader"));
    assert_eq!(config.filter_subject, wanted.consumers[0].filter);
    assert_eq!(
        (config.deliver_policy, config.ack_policy),
        (DeliverPolicy::All, AckPolicy::Explicit)
    );
    assert_eq!((config.ack_wait, config.max_deliver), (wanted.consumers[0].ack_wait, -1));
}

#[tokio::test]
async fn the_user_in_the_url_authenticates_the_client() {
    let nats = TestNats::start_with(&["--user", "ada", "--pass", "p@ss"]);
    let at = nats.url().trim_start_matches("nats://").to_owned();
    connect(&format!("nats://ada:p%40ss@{at}")).await.ensure(&settings()).await.expect("a stream");
    let stranger = NatsStream::open(Address::parse(&format!("nats://eve:x@{at}")).expect("a URL"));
    let refused = stranger.ensure(&settings()).await;
    assert!(refused.is_err() && !stranger.is_connected(), "{refused:?}");
}

#[tokio::test]
async fn the_token_in_the_url_authenticates_the_client() {
    let nats = TestNats::start_with(&["--auth", "s3cr3t"]);
    let at = nats.url().trim_start_matches("nats://").to_owned();
    let stream = connect(&format!("nats://s3cr3t@{at}")).await;
    tokio::time::timeout(LONG, stream.ensure(&settings())).await.expect("soon").expect("a stream");
}
