use insta::assert_snapshot;
use noetl_test_app::TestApp;

use crate::api::get;

#[tokio::test]
async fn a_shard_is_selected_by_the_published_hash() {
    let app = TestApp::start(0).await;
    for (id, count, shard) in [
        (320_816_801_799_737_344_i64, 16, 14),
        (1, 4, 1),
        (42, 4, 3),
        (325, 4, 0),
        (325, 8, 4),
        (i64::MAX, 4, 0),
    ] {
        let path = format!("/api/runtime/shard-info?execution_id={id}&shard_count={count}");
        let (status, body) = get(&app, &path).answer().await;
        assert_eq!((status, &body["shard_index"]), (200, &shard.into()), "{path}");
    }
    let asked = get(&app, "/api/runtime/shard-info?execution_id=42&shard_count=4");
    assert_snapshot!(asked.shown().await, @r#"
    200
    {
      "execution_id": 42,
      "shard_count": 4,
      "shard_index": 3,
      "source": "noetl-server",
      "hash_function": "twox_hash::XxHash64",
      "seed": 0,
      "server_config": {
        "shard_index": 0,
        "shard_count": 1
      }
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn invalid_ids_and_counts_are_rejected() {
    let app = TestApp::start(0).await;
    for query in [
        "",
        "execution_id=abc&shard_count=4",
        "execution_id=9223372036854775808&shard_count=4",
        "execution_id=1&shard_count=0",
        "execution_id=1&shard_count=1025",
        "execution_id=1&shard_count=-1",
        "execution_id=1&shard_count=x",
    ] {
        let (status, body) = get(&app, &format!("/api/runtime/shard-info?{query}")).answer().await;
        assert_eq!((status, &body["code"]), (400, &"invalid_query".into()), "{query}: {body}");
    }
    app.close().await;
}
