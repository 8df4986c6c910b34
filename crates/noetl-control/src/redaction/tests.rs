use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_model::FailureKind;
use serde_json::json;

use super::fields::secret_fields;
use super::*;

const TOKEN: &str = "s3cr3t/\"tök en\"+&";

fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    secrets.note("api", &json!({"token": TOKEN, "user": "somebody-known", "pin": "1234"}));
    secrets
}

fn redacted(mut value: Value) -> Value {
    secrets().redact(&mut value);
    value
}

#[test]
fn a_secret_becomes_its_mark_in_every_form() {
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
    secrets().redact_failure(&mut failure);
    assert_eq!(failure.message, "refused «secret:api.token»");
    assert_eq!(failure.details.as_deref(), Some(&json!({"body": "«secret:api.token»"})));
    let mut numbers = Secrets::default();
    numbers.note("n", &json!({"password": 1_234_567_890}));
    let mut value = json!([1_234_567_890, 12_345_678_901_i64, "tel 1234567890", 3]);
    numbers.redact(&mut value);
    let mark = "«secret:n.password»";
    assert_eq!(value, json!([mark, 12_345_678_901_i64, format!("tel {mark}"), 3]));
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
    let mut secrets = Secrets::default();
    secrets.note("a", &json!({"token": "abcdefgh"}));
    secrets.note("b", &json!({"token": "abcdefghij"}));
    let mut value = json!("abcdefghij abcdefgh");
    secrets.redact(&mut value);
    assert_eq!(value, json!("«secret:b.token» «secret:a.token»"));
    assert_eq!(secrets.find(&json!(["x", {"y": "abcdefghij"}])), Some("«secret:b.token»"));
    assert_eq!(secrets.find(&json!(["x"])), None);
}

#[test]
fn a_changed_value_and_the_one_before_are_both_known_and_old_ones_are_let_go() {
    let mut secrets = Secrets::default();
    for number in 10..30 {
        secrets.note("a", &json!({ "token": format!("value-of-{number}") }));
    }
    let known = |number: u32| secrets.find(&json!(format!("value-of-{number}"))).is_some();
    assert!(known(29) && known(22), "the newest are known");
    assert!(!known(10), "the oldest is let go");
}

#[test]
fn of_an_address_the_password_is_secret_and_then_the_whole() {
    let fields = |data: Value| secret_fields(&data).into_iter().map(|(_, v)| v).collect::<Vec<_>>();
    let address = "postgres://u:p%40ssword@h:5432/d";
    assert_eq!(fields(json!({ "dsn": address })), ["p%40ssword", "p@ssword", address]);
    assert_eq!(fields(json!({"url": "https://api.example.com/v1?page=2"})), [""; 0]);
    let words = "host=h user=u password='longer one'";
    assert!(fields(json!({ "dsn": words })).contains(&words.to_owned()));
    assert_eq!(fields(json!({"connection": "postgres://u@h/d"})), [""; 0]);
    // Nested fields have their place; where and as whom is none.
    let nested = json!({"sa": {"private_key": "k\ney", "client_email": "a@b"}, "l": ["x"]});
    let found = secret_fields(&nested);
    assert_eq!(
        found,
        [("sa.private_key".to_owned(), "k\ney".to_owned()), ("l.0".to_owned(), "x".to_owned())]
    );
    assert_eq!(secret_fields(&json!("bare")), [("value".to_owned(), "bare".to_owned())]);
}

#[test]
fn what_is_too_short_is_named() {
    let data = json!({"password": "short", "token": "long enough", "user": "u", "empty": ""});
    assert_eq!(short_fields(&data), ["password"]);
}

#[test]
fn tenants_do_not_know_each_others_secrets() {
    let redaction = Redaction::default();
    assert!(redaction.is_empty());
    let (one, other) = (Tenant::default(), Tenant::new("other"));
    redaction.note(&one, "api", &json!({"user": "nothing-secret", "password": "short"}));
    assert!(redaction.is_empty(), "nothing in it is looked for");
    redaction.note(&one, "api", &json!({"token": TOKEN}));
    for (tenant, expected) in [(&one, "«secret:api.token»"), (&other, TOKEN)] {
        let mut value = json!(TOKEN);
        redaction.value(tenant, &mut value);
        assert_eq!(value, json!(expected));
    }
}

#[test]
fn marks_are_read_with_every_way_to_part_their_name() {
    let text = format!("a {} b {}", mark("my.api", "x.y"), mark("b", "token"));
    let found = marks_in(&text);
    assert_eq!(found.len(), 2);
    assert_eq!(&text[found[0].range.clone()], "«secret:my.api.x.y»");
    let readings: Vec<_> = found[0].readings().collect();
    assert_eq!(readings, [("my.api.x", "y"), ("my.api", "x.y"), ("my", "api.x.y")]);
    assert_eq!(found[1].readings().collect::<Vec<_>>(), [("b", "token")]);
    for none in ["«secret:", "«secret:a", "«secret:a«secret:b", "secret:a.b»", "»«"] {
        assert_eq!(marks_in(none), [], "{none}");
    }
    assert_eq!(marks_in(&format!("«secret:{}»", "x".repeat(5000))), []);
    assert_eq!(marks_in("«secret:«secret:a.b»").len(), 1);
}

#[test]
fn a_mark_that_comes_from_outside_is_none_any_more() {
    let mut value = json!({"a": ["«secret:api.token»"], "«secret:k.v»": "«other»"});
    unmark(&mut value);
    assert_eq!(value, json!({"a": ["‹secret:api.token»"], "‹secret:k.v»": "«other»"}));
    let mut failure = Failure::new(FailureKind::Auth, "no «secret:a.b»")
        .with_details(json!({"b": "«secret:a.b»"}));
    unmark_failure(&mut failure);
    assert!(marks_in(&failure.message).is_empty());
    assert_eq!(failure.details.as_deref(), Some(&json!({"b": "‹secret:a.b»"})));
}
