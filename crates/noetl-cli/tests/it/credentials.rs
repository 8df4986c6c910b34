//! Credentials that a run brings along, with a database that checks its passwords.

use std::fs;
use std::path::Path;

use noetl_test_services::postgres::TestServer;
use serde_json::json;

use crate::noetl::{Home, Said, playbook};

const PASSWORD: &str = "p@ss/word of \"app\"";

/// A server that lets the role `app` in by its password alone.
struct Guarded {
    server: TestServer,
    _rules: tempfile::TempDir,
}

impl Guarded {
    fn start() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let rules = tempfile::tempdir().unwrap();
        fs::set_permissions(rules.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let file = rules.path().join("hba.conf");
        let text = "local all all trust\nhost all app 127.0.0.1/32 scram-sha-256\n\
                    host all all 127.0.0.1/32 trust\n";
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let server = TestServer::start(&[&format!("hba_file={}", file.display())]);
        server.psql(&format!("create role app login password '{PASSWORD}'"));
        Self { server, _rules: rules }
    }

    fn port(&self) -> u16 {
        let (_, rest) = self.server.url().rsplit_once(':').unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    fn credential(&self, password: &str) -> String {
        json!([{"name": "shop", "type": "postgres", "data": {
            "host": "127.0.0.1", "port": self.port(), "user": "app", "password": password,
            "database": "postgres",
        }}])
        .to_string()
    }
}

fn asking() -> String {
    playbook(
        "{}",
        r#"  - step: start
    tool:
      kind: postgres
      auth: shop
      query: select current_user as who, 1 + 1 as two
    next: {arcs: [{step: look}]}
  - step: look
    tool: {kind: secrets, auth: shop, field: password}
    next: {arcs: [{step: pass}]}
  - step: pass
    tool:
      kind: postgres
      auth: shop
      query: select $1::text as given, length($1::text) as long
      params: ["{{ look.value }}"]
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: {who: "{{ start.rows[0].who }}", given: "{{ pass.rows[0].given }}", long: "{{ pass.rows[0].long }}"}}
"#,
    )
}

fn assert_clean(what: &str, bytes: &[u8]) {
    let escaped = json!(PASSWORD).to_string();
    let forms = [
        PASSWORD.to_owned(),
        escaped[1..escaped.len() - 1].to_owned(),
        "p%40ss%2Fword%20of%20%22app%22".to_owned(),
        // Base64 of it, and of its middle wherever that begins.
        "cEBzcy93b3JkIG9mICJhcHAi".to_owned(),
        "QHNzL3dvcmQgb2Yg".to_owned(),
        "c3Mvd29yZCBvZiAi".to_owned(),
    ];
    for form in forms {
        let found = bytes.windows(form.len()).any(|window| window == form.as_bytes());
        assert!(!found, "{what} holds {form}");
    }
}

fn assert_clean_run(said: &Said) {
    assert_clean("stdout", said.stdout.as_bytes());
    assert_clean("stderr", said.stderr.as_bytes());
}

fn assert_clean_files(directory: &Path, prefix: &str) {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let kept = files.filter(|it| it.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    let kept: Vec<_> = kept.collect();
    assert!(!kept.is_empty(), "there is a database");
    for file in kept {
        assert_clean(&file.display().to_string(), &fs::read(&file).unwrap());
    }
}

#[test]
fn a_database_step_uses_its_alias_and_no_file_contains_the_password() {
    let (home, guarded) = (Home::with(&asking()), Guarded::start());
    home.write("c.json", guarded.credential(PASSWORD));
    let run = ["run", "test.yaml", "--credentials", "c.json", "--db", "t.db", "--output", "json"];
    let said = home.noetl(run);
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = &said.json()["result"];
    // The database got the password, and what came back is its mark.
    let expected = json!({"who": "app", "given": "«secret:shop.password»", "long": PASSWORD.len()});
    assert_eq!(*result, expected);
    assert_clean_run(&said);
    assert_clean_files(home.path(), "t.db");
    assert!(
        home.path().join("encryption.key").exists(),
        "what stays in the file can be read later"
    );
    // Again without the file: the credential is in the database, its key beside it.
    let said = home.noetl(["run", "test.yaml", "--db", "t.db", "--output", "json"]);
    assert_eq!((said.code, &said.json()["result"]), (Some(0), &expected), "{said:?}");
}

#[test]
fn a_wrong_password_is_an_auth_failure_without_the_password() {
    let (home, guarded) = (Home::with(&asking()), Guarded::start());
    home.write("c.json", guarded.credential("some other password"));
    let said = home.noetl(["run", "test.yaml", "--credentials", "c.json", "--output", "json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let error = said.json()["error"].to_string();
    assert!(error.contains("app"), "{error}");
    assert!(!said.stdout.contains("some other password"), "{said:?}");
    assert!(!home.path().join("encryption.key").exists(), "a run in memory leaves nothing");
}

#[test]
fn a_run_without_credentials_names_the_missing_ones_and_how_to_supply_them() {
    let home = Home::with(&asking());
    let said = home.noetl(["run", "test.yaml"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("there is no credential 'shop'"), "{}", said.stderr);
    assert!(said.stderr.contains("noetl run --credentials FILE"), "{}", said.stderr);
}

#[test]
fn an_invalid_credential_file_fails_the_run_and_a_short_secret_causes_a_warning() {
    let home = Home::with(&playbook("{}", "  - {step: start, tool: {kind: noop, result: done}}\n"));
    home.write("bad.yaml", "shop: {data: {password: sesame}}\n");
    let said = home.noetl(["run", "test.yaml", "--credentials", "bad.yaml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("'shop' has no 'type'"), "{}", said.stderr);
    assert!(!said.stderr.contains("sesame"), "{}", said.stderr);
    home.write("short.yaml", "shop: {type: basic, data: {user: u, password: sesame}}\n");
    let said = home.noetl(["run", "test.yaml", "--credentials", "short.yaml"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "done\n"), "{said:?}");
    assert!(said.stderr.contains("credential 'shop': 'password' is shorter than 8"), "{said:?}");
}

#[test]
fn credentials_in_a_shared_database_require_an_explicit_key() {
    let home = Home::with(&playbook("{}", "  - {step: start, tool: {kind: noop}}\n"));
    home.write("c.yaml", "shop: {type: basic, data: {user: u, password: long enough}}\n");
    let url = "postgres://nobody@127.0.0.1:1/none";
    let said = home.noetl(["run", "test.yaml", "--credentials", "c.yaml", "--database-url", url]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("NOETL_ENCRYPTION_KEY"), "{}", said.stderr);
}
