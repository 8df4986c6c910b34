//! A schema newer than the program. Upgrades with executions in flight are tests of `noetl-test-app`.

use noetl_store_postgres::{OpenError, Options, PostgresStore};

/// Returns the number of migrations. The file without a number runs after each of them.
fn migrations() -> usize {
    let files = std::fs::read_dir(crate::MIGRATIONS).expect("a directory");
    let names = files.map(|file| file.expect("a file").file_name());
    names.filter(|name| name.to_string_lossy().starts_with('0')).count()
}

#[tokio::test]
async fn a_newer_schema_is_rejected_and_left_unchanged() {
    let database = crate::migrated_database();
    let version = migrations() + 1;
    database.psql(&format!("insert into noetl.schema_migration values ({version}, 'later')"));
    for migrates in [true, false] {
        let options = Options::new(&database.url()).expect("a URL").migrate(migrates);
        let refused = PostgresStore::open(options).await.map(|_| ()).expect_err("a refusal");
        let OpenError::Newer { found, known, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!((*found, *known + 1), (version as i32, version as i32));
    }
}
