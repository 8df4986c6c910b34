//! Cases that change an existing stream: consumer filters and deleted messages.

use super::{Answer, Subject, consumer, ids, messages, settings, states, until_waiting};
use crate::{Consumer, PublishAck, StreamSettings};

pub async fn messages_of_a_filter_are_purged_up_to_a_sequence_number(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    let mut batch = messages(["a", "b", "c"]);
    batch[1].subject = "cases.y".to_owned();
    assert_eq!(subject.stream.publish(batch).await, vec![Ok(PublishAck::New); 3]);
    let name = settings().name;
    let before = subject.stream.state(&name).await.expect("an answer").expect("a stream");
    assert_eq!(subject.stream.publish(messages(["d"])).await, [Ok(PublishAck::New)]);
    subject.stream.discard(&name, "cases.x", before.last).await.expect("an answer");
    assert_eq!(ids(subject).await, ["b", "d"]);
    until_waiting(subject, (2, 0)).await;
    let delivered =
        async || subject.inspect.give("reader", Answer::Done).await.map(|message| message.id);
    assert_eq!(delivered().await.as_deref(), Some("b"));
    assert_eq!(delivered().await.as_deref(), Some("d"));
}

pub async fn the_subjects_of_a_consumer_can_be_changed(subject: &Subject) {
    let elsewhere = StreamSettings { consumers: vec![consumer("cases.y")], ..settings() };
    subject.stream.ensure(&elsewhere).await.expect("a stream");
    let name = &settings().name;
    subject.stream.redirect(name, &consumer("cases.>")).await.expect("another filter");
    assert!(states(subject).await[0].reads("cases.z.1"));
    assert_eq!(subject.stream.publish(messages(["a"])).await, [Ok(PublishAck::New)]);
    let delivered = subject.inspect.give("reader", Answer::Done).await.map(|message| message.id);
    assert_eq!(delivered.as_deref(), Some("a"));
    let missing = Consumer { name: "missing".to_owned(), ..consumer("cases.>") };
    assert!(subject.stream.redirect(name, &missing).await.is_err());
    assert_eq!(states(subject).await.len(), 1, "none is made");
}
