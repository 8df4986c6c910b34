use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_model::FailureKind;
use serde_json::json;

use super::fields::secret_fields;
use super::*;

const TOKEN: &str = "s3cr3t/\"tök en\"+&";

fn secrets() -> SecretTable {
    let mut secrets = SecretTable::default();
    let data = json!({"token": TOKEN, "user": "somebody-known", "pin": "1234"});
    secrets.note("api", Some("bearer"), &data);
    secrets
}

fn redacted(mut value: Value) -> Value {
    secrets().redact(&mut value, None);
    value
}

#[test]
fn a_secret_becomes_its_placeholder_in_every_form() {
    let forms = [
        TOKEN.to_owned(),
        "s3cr3t/\\\"tök en\\\"+&".to_owned(),
        "s3cr3t/\\\"t\\u00f6k en\\\"+&".to_owned(),
        "s3cr3t%2F%22t%C3%B6k%20en%22%2B%26".to_owned(),
        "s3cr3t%2f%22t%c3%b6k%20en%22%2b%26".to_owned(),
        "s3cr3t%2F%22t%C3%B6k+en%22%2B%26".to_owned(),
        BASE64_STANDARD.encode(TOKEN),
        BASE64_STANDARD.encode(TOKEN).trim_end_matches('=').to_owned(),
        BASE64_STANDARD.encode(TOKEN).replace('+', "-").replace('/', "_"),
    ];
    for form in forms {
        let found = redacted(json!({"a": [format!("<{form}>")]}));
        assert_eq!(found, json!({"a": ["<«secret:api.token»>"]}), "{form}");
    }
}

#[test]
fn base64_of_something_around_a_secret_does_not_hold_it() {
    for before in ["", "u", "us", "user:", "someone:"] {
        for after in ["", "x", "yy", "zzz"] {
            let text = BASE64_STANDARD.encode(format!("{before}{TOKEN}{after}"));
            let found = redacted(json!(text));
            let found = found.as_str().unwrap();
            assert!(found.contains("«secret:api.token»"), "{before} {after}: {found}");
            // What is left of the text is what stood beside the secret, and a few bits.
            let left = found.replace("«secret:api.token»", "");
            let most = BASE64_STANDARD.encode(format!("{before}{after}")).len() + 4;
            assert!(left.len() <= most, "{before} {after}: {left}");
        }
    }
}

#[test]
fn keys_messages_details_and_numbers_are_looked_at_too() {
    let found = redacted(json!({TOKEN: {"b": TOKEN}}));
    assert_eq!(found, json!({"«secret:api.token»": {"b": "«secret:api.token»"}}));
    let mut failure = Failure::new(FailureKind::Auth, format!("refused {TOKEN}"))
        .with_details(json!({"body": TOKEN}));
    secrets().redact_failure(&mut failure, None);
    assert_eq!(failure.message, "refused «secret:api.token»");
    assert_eq!(failure.details.as_deref(), Some(&json!({"body": "«secret:api.token»"})));
    let mut numbers = SecretTable::default();
    numbers.note("n", None, &json!({"password": 1_234_567_890}));
    let mut value = json!([1_234_567_890, 12_345_678_901_i64, "tel 1234567890", 3]);
    numbers.redact(&mut value, None);
    let text = "«secret:n.password»";
    assert_eq!(value, json!([text, 12_345_678_901_i64, format!("tel {text}"), 3]));
}

#[test]
fn other_data_stays_as_it_is() {
    let data = json!({
        "user": "somebody-known", "pin": "1234", "password": "looks-like-a-secret", "n": 1.50,
        "token": "eyJhbGciOiJIUzI1NiJ9.e30.x", "half": "s3cr3t/", "«secret»": "«secret:", "e": {},
    });
    assert_eq!(redacted(data.clone()).to_string(), data.to_string());
}

#[test]
fn the_longest_of_two_secrets_is_the_one_found() {
    let mut secrets = SecretTable::default();
    secrets.note("a", None, &json!({"token": "abcdefgh"}));
    secrets.note("b", None, &json!({"token": "abcdefghij"}));
    let mut value = json!("abcdefghij abcdefgh");
    secrets.redact(&mut value, None);
    assert_eq!(value, json!("«secret:b.token» «secret:a.token»"));
    assert_eq!(secrets.find(&json!(["x", {"y": "abcdefghij"}])), Some("«secret:b.token»"));
    assert_eq!(secrets.find(&json!(["x"])), None);
}

#[test]
fn a_changed_value_and_the_one_before_are_both_known_and_old_ones_are_let_go() {
    let mut secrets = SecretTable::default();
    for number in 10..30 {
        secrets.note("a", None, &json!({ "token": format!("value-of-{number}") }));
    }
    let known = |number: u32| secrets.find(&json!(format!("value-of-{number}"))).is_some();
    assert!(known(29) && known(22), "the newest are known");
    assert!(!known(10), "the oldest is let go");
}

#[test]
fn every_field_is_secret_unless_its_type_declares_it_public() {
    let names = |kind: Option<&str>, data: &Value| -> Vec<String> {
        secret_fields(kind, data).into_iter().map(|field| field.field).collect()
    };
    let data = json!({"host": "db.internal", "port": 5432, "user": "reports", "database": "shop",
                      "password": "correct horse", "account": "acct-000001", "region": "eu-west-1"});
    assert_eq!(names(Some("postgres"), &data), ["password", "account", "region"]);
    assert_eq!(names(Some(" Postgres "), &data), ["password", "account", "region"]);
    let all = ["host", "user", "database", "password", "account", "region"];
    assert_eq!(names(Some("in-house"), &data), all, "an unknown type declares no field public");
    assert_eq!(names(None, &data), all);
    // Nested fields have their path.
    let nested = json!({"sa": {"private_key": "k\ney", "client_email": "a@b"}, "l": ["x"]});
    assert_eq!(names(Some("gcs"), &nested), ["sa.private_key", "l.0"]);
    assert_eq!(names(None, &json!("bare")), ["value"]);
}

#[test]
fn an_address_is_public_unless_it_contains_a_password() {
    let secret = |url: &str| !secret_fields(Some("postgres"), &json!({ "dsn": url })).is_empty();
    assert!(secret("postgres://u:p%40ssword@h:5432/d"));
    assert!(secret("host=h user=u password='longer one'"));
    assert!(!secret("postgres://u@h/d"));
    assert!(!secret("https://api.example.com/v1?page=2"));
}

#[test]
fn the_secrets_within_addresses_headers_and_keys_are_found() {
    let mut secrets = SecretTable::default();
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshortline\nQw==\n-----END KEY-----";
    let data = json!({"dsn": "postgres://u:p%40ssw0rd-x@h/d", "header": "Bearer abcdefgh.ijk",
                      "private_key": key});
    secrets.note("all", Some("in-house"), &data);
    let found = |text: &str| {
        let mut value = json!(text);
        secrets.redact(&mut value, None);
        value.as_str().map(str::to_owned).unwrap_or_default()
    };
    for (text, expected) in [
        ("p@ssw0rd-x", "«secret:all.dsn»"),
        ("x p%40ssw0rd-x y", "x «secret:all.dsn» y"),
        ("cEBzc3cwcmQteA==", "«secret:all.dsn»"),
        ("<b>p@ssw0rd-x</b>", "<b>«secret:all.dsn»</b>"),
        ("token=abcdefgh.ijk", "token=«secret:all.header»"),
        ("at MIIEvQIBADANBgkqhkiG9w0B.", "at «secret:all.private_key»."),
        ("a shortline b", "a «secret:all.private_key» b"),
        ("one\n  Qw==\nthree", "one\n  «secret:all.private_key»\nthree"),
        ("aQw== is no line", "aQw== is no line"),
        ("-----BEGIN KEY-----", "-----BEGIN KEY-----"),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
    let escaped = key.replace('\n', "\\n");
    assert!(!found(&escaped).contains("MIIE"), "as JSON writes it");
    let wrapped = BASE64_STANDARD.encode(key);
    for line in wrapped.as_bytes().chunks(64) {
        let line = String::from_utf8_lossy(line).into_owned();
        assert!(found(&line).contains("«secret:all.private_key»"), "{line}");
    }
}

#[test]
fn html_writes_a_secret_in_a_way_that_is_found() {
    let mut secrets = SecretTable::default();
    secrets.note("web", None, &json!({"token": "a<b>\"c'&d-e"}));
    for form in [
        "a&lt;b&gt;\"c'&amp;d-e",
        "a&lt;b&gt;&quot;c'&amp;d-e",
        "a&lt;b&gt;&quot;c&#39;&amp;d-e",
        "a&lt;b&gt;&#34;c&#x27;&amp;d-e",
    ] {
        assert_eq!(secrets.find(&json!(form)), Some("«secret:web.token»"), "{form}");
    }
}

#[test]
fn only_the_whole_newest_value_gets_a_placeholder_that_resolves() {
    let mut secrets = SecretTable::default();
    for token in ["earlier-value", "the/newest value"] {
        secrets.note("api", None, &json!({"token": token, "key": "long-line-1\nlong-line-2"}));
    }
    let mint = |alias: &str, field: &str| Some(format!("<{alias}.{field}>"));
    let redacted = |text: &str| {
        let mut value = json!(text);
        secrets.redact(&mut value, Some(&mint));
        value.as_str().map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(redacted("a the/newest value b"), "a <api.token> b");
    assert_eq!(redacted("long-line-1\nlong-line-2"), "<api.key>");
    for text in ["earlier-value", "the%2Fnewest%20value", "dGhlL25ld2VzdCB2YWx1ZQ=="] {
        assert_eq!(redacted(text), "«secret:api.token»", "{text}");
    }
    assert_eq!(
        redacted("long-line-2"),
        "«secret:api.key»",
        "a line stands for no more than itself"
    );
    let declines = |_: &str, _: &str| None;
    let mut value = json!("the/newest value");
    secrets.redact(&mut value, Some(&declines));
    assert_eq!(value, json!("«secret:api.token»"), "the execution was not handed it");
}

#[test]
fn a_short_secret_is_named() {
    let data = json!({"password": "short", "token": "long enough", "user": "u", "empty": ""});
    assert_eq!(short_fields(Some("basic"), &data), ["password"]);
}

#[test]
fn tenants_do_not_know_each_others_secrets() {
    let redaction = Redaction::default();
    assert!(redaction.is_empty());
    let (one, other) = (Tenant::default(), Tenant::new("other"));
    redaction.note(
        &one,
        "api",
        Some("basic"),
        &json!({"user": "nothing-secret", "password": "short"}),
    );
    assert!(redaction.is_empty(), "nothing in it is looked for");
    redaction.note(&one, "api", Some("basic"), &json!({"token": TOKEN}));
    for (tenant, expected) in [(&one, "«secret:api.token»"), (&other, TOKEN)] {
        let mut value = json!(TOKEN);
        redaction.value(tenant, &mut value);
        assert_eq!(value, json!(expected));
    }
}
