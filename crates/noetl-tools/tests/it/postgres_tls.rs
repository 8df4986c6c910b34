//! Encrypted connections, against a server with a certificate of its own.

use std::path::Path;
use std::process::Command;

use noetl_model::{Failure, FailureKind, Value};
use noetl_test_services::postgres::TestServer;
use serde_json::json;

use crate::harness::{call, registry};

/// Makes a certificate for `localhost` that signs itself, readable by the server's user.
fn certificate(directory: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:false"])
        .arg("-keyout")
        .arg(directory.join("server.key"))
        .arg("-out")
        .arg(directory.join("server.crt"))
        .output()
        .expect("openssl makes a certificate");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let theirs = Command::new("sh")
        .arg("-c")
        .arg(
            "chmod 600 server.key; chmod 755 .; [ \"$(id -u)\" != 0 ] || chown postgres server.key",
        )
        .current_dir(directory)
        .status()
        .unwrap();
    assert!(theirs.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_is_checked_as_sslmode_requires() {
    let directory = tempfile::tempdir().unwrap();
    certificate(directory.path());
    let path = |name: &str| directory.path().join(name).display().to_string();
    let server = TestServer::start(&[
        "ssl=on",
        &format!("ssl_cert_file={}", path("server.crt")),
        &format!("ssl_key_file={}", path("server.key")),
    ]);
    let run = async |host: &str, mode: &str, root: Option<String>| -> Result<Value, Failure> {
        let config = json!({
            "connection": server.url(), "host": host, "sslmode": mode, "sslrootcert": root,
            "query": "select ssl as v from pg_stat_ssl where pid = pg_backend_pid()",
        });
        let answer = registry().run("postgres", call(config)).await?;
        Ok(answer["rows"][0]["v"].clone())
    };
    let trusted = Some(path("server.crt"));
    assert_eq!(run("localhost", "disable", None).await, Ok(json!(false)));
    assert_eq!(run("localhost", "prefer", None).await, Ok(json!(true)));
    assert_eq!(run("localhost", "require", None).await, Ok(json!(true)));
    assert_eq!(run("127.0.0.1", "verify-ca", trusted.clone()).await, Ok(json!(true)));
    assert_eq!(run("localhost", "verify-full", trusted.clone()).await, Ok(json!(true)));
    // A name that is not in the certificate, and an untrusted certificate.
    let refused = run("127.0.0.1", "verify-full", trusted).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Connection, "{refused}");
    for mode in ["verify-ca", "verify-full"] {
        let refused = run("localhost", mode, None).await.unwrap_err();
        assert_eq!(refused.kind, FailureKind::Connection, "{refused}");
    }
    let absent = run("localhost", "verify-full", Some("nowhere.pem".into())).await.unwrap_err();
    assert_eq!(absent.kind, FailureKind::Config, "{absent}");
}
