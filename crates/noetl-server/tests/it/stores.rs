//! Runs a test on every store.

use std::sync::Arc;

use noetl_secrets::EncryptionKey;
use noetl_server::{InternalToken, Options};
use noetl_store::Store;
use noetl_store_postgres::PostgresStore;
use noetl_store_sqlite::SqliteStore;
use noetl_test_app::{TestApp, TestAppBuilder, migrated_database};

/// A key for tests.
pub(crate) fn key() -> EncryptionKey {
    let key = EncryptionKey::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    key.expect("a key")
}

/// The internal token of these apps.
pub(crate) const TOKEN: &str = "for system pools";

fn builder() -> TestAppBuilder {
    let internal_token = InternalToken::read_by(|| Some(TOKEN.to_owned()));
    let options = Options { internal_token, ..Options::default() };
    TestApp::builder().slots(0).encryption_key(key()).options(options)
}

/// An app that can keep credentials.
pub(crate) async fn app() -> TestApp {
    builder().start().await
}

/// Runs a test on an app in memory, on one on SQLite and on one on Postgres.
pub(crate) async fn on_every_store(test: impl AsyncFn(&TestApp)) {
    let memory = app().await;
    test(&memory).await;
    memory.close().await;
    let directory = tempfile::TempDir::new().expect("a directory");
    let options = noetl_store_sqlite::Options::file(directory.path().join("noetl.db"));
    on(Arc::new(SqliteStore::open(options).expect("a store")), &test).await;
    let database = migrated_database();
    let options = noetl_store_postgres::Options::new(&database.url()).expect("a URL");
    on(Arc::new(PostgresStore::open(options).await.expect("a store")), &test).await;
}

async fn on(store: Arc<dyn Store>, test: &impl AsyncFn(&TestApp)) {
    let app = builder().over(store).start().await;
    test(&app).await;
    app.close().await;
}
