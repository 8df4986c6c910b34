//! Callers of a real identity provider.

use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use noetl_control::{Role, TokenRequest};
use noetl_model::Tenant;
use noetl_server::{Auth, Oidc, OidcSettings, Options};
use noetl_testkit::TestApp;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::api::{get, post};

/// A running provider. It ends when its input is closed, which this does when it is dropped.
struct Provider {
    address: String,
    server: Child,
}

impl Provider {
    #[expect(clippy::print_stdout, reason = "a test that did not run says why")]
    async fn start() -> Option<Self> {
        if std::env::var_os("NOETL_TEST_SERVICES").is_some_and(|value| value == "off") {
            println!("skipped: NOETL_TEST_SERVICES=off, so no identity provider is started");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services/oidc.sh");
        let mut server = Command::new(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the script that starts an identity provider");
        let output = server.stdout.take().expect("a pipe");
        let line = BufReader::new(output).lines().next_line().await.expect("output");
        Some(Self { address: line.expect("the address of a provider"), server })
    }

    fn settings(&self) -> OidcSettings {
        OidcSettings {
            issuer: self.address.clone(),
            audience: "noetl".into(),
            roles_claim: "roles".into(),
            tenant_claim: "tenant".into(),
        }
    }

    async fn app(&self) -> TestApp {
        let auth = Auth::Oidc(Oidc::new(self.settings()).expect("a client"));
        let options = Options { auth, allow_any_host: true, ..Options::default() };
        TestApp::builder().slots(0).options(options).start().await
    }

    /// A token for a client, for this resource.
    async fn token(&self, client: &str, resource: &str) -> String {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let form = [("grant_type", "client_credentials"), ("resource", resource)];
        let client = client.replace('@', "%40");
        let asked = http.post(format!("{}/token", self.address));
        let asked = asked.basic_auth(client, Some("secret")).form(&form).send().await;
        let said: Value = asked.expect("an answer").json().await.expect("JSON");
        said["access_token"].as_str().unwrap_or_else(|| panic!("no token: {said}")).to_owned()
    }

    async fn rotate(&self) {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        http.post(format!("{}/rotate", self.address)).send().await.expect("an answer");
    }
}

async fn asked(app: &TestApp, token: &str) -> (u16, Value) {
    get(app, "/api/whoami").header("authorization", &format!("Bearer {token}")).answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_vouches_for_roles_and_tenant() {
    // The typed client of an app sets up what the other clients here need.
    let early = TestApp::start(0).await;
    let Some(provider) = Provider::start().await else { return early.close().await };
    let app = provider.app().await;
    let viewer = provider.token("viewer@acme", "urn:noetl").await;
    let (status, who) = asked(&app, &viewer).await;
    assert_eq!(status, 200, "{who}");
    assert_eq!((&who["tenant"], &who["roles"]), (&json!("acme"), &json!(["viewer"])));
    let register = post(&app, "/api/catalog/register", r#"{"content":"a: 1"}"#);
    let refused = register.header("authorization", &format!("Bearer {viewer}")).answer().await;
    assert_eq!((refused.0, &refused.1["code"]), (403, &json!("role_missing")));

    let nothing = provider.token("nothing", "urn:noetl").await;
    assert_eq!(asked(&app, &nothing).await.0, 403, "no role is no right");

    // A token of ours is as good: workers have no browser.
    let request = TokenRequest { name: "w".into(), role: Role::Worker, lasts: None };
    let ours = app.control.tokens.create(&Tenant::default(), request).await.expect("a token").1;
    assert_eq!(asked(&app, &ours).await.0, 200);
    app.close().await;
    early.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_made_for_another_or_changed_is_refused() {
    let early = TestApp::start(0).await;
    let Some(provider) = Provider::start().await else { return early.close().await };
    let app = provider.app().await;
    let good = provider.token("viewer", "urn:noetl").await;
    let parts: Vec<&str> = good.split('.').collect();
    let encode = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = BASE64_URL_SAFE_NO_PAD.decode(parts[1]).expect("base64");
    let mut claims: Value = serde_json::from_slice(&claims).expect("claims");
    claims["roles"] = json!(["admin"]);
    let raised = format!("{}.{}.{}", parts[0], encode(claims.clone()), parts[2]);
    let unsigned = format!("{}.{}.", encode(json!({"alg": "none"})), encode(claims.clone()));
    let shared = format!("{}.{}.{}", encode(json!({"alg": "HS256"})), encode(claims), parts[2]);
    let other = provider.token("viewer", "urn:other").await;
    for (token, why) in [
        (raised, "changed claims"),
        (unsigned, "no signature"),
        (shared, "a shared secret"),
        (other, "another audience"),
        ("a.b.c".to_owned(), "no token"),
        (good[..good.len() - 2].to_owned(), "a cut signature"),
    ] {
        let (status, body) = asked(&app, &token).await;
        assert_eq!((status, &body["code"]), (401, &json!("not_authenticated")), "{why}: {body}");
    }
    assert_eq!(asked(&app, &good).await.0, 200, "and the good one is taken");
    app.close().await;
    early.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_be_away_and_change_its_keys() {
    let early = TestApp::start(0).await;
    let Some(mut provider) = Provider::start().await else { return early.close().await };
    let before = provider.token("admin", "urn:noetl").await;
    let app = provider.app().await;
    assert_eq!(asked(&app, &before).await.0, 200);
    provider.rotate().await;
    let after = provider.token("admin", "urn:noetl").await;
    // Keys that were just read are not read again for whoever makes key names up; a process that
    // has not asked yet finds the new one.
    let other = provider.app().await;
    assert_eq!(asked(&other, &after).await.0, 200);
    let third = provider.app().await;
    provider.server.kill().await.expect("killed");
    assert_eq!(asked(&app, &before).await.0, 200, "known keys go on to count");
    let (status, body) = asked(&third, &after).await;
    assert_eq!((status, &body["code"]), (503, &json!("identity_provider_unavailable")));
    for app in [app, other, third, early] {
        app.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_takes_messages_of_one_identity() {
    let early = TestApp::start(0).await;
    let Some(provider) = Provider::start().await else { return early.close().await };
    let app = TestApp::start(0).await;
    let document = format!(
        "kind: Subscription\nmetadata: {{name: pushed, path: sub/pushed}}\nspec:\n  source: webhook\n  \
         mode: push\n  dispatch: {{playbook: tests/greet}}\n  ingress: {{gateway_path: /ingress/pushed, \
         verify: {{type: pubsub_oidc, audience: noetl, service_account: worker, issuer: '{}'}}}}\n",
        provider.address
    );
    for text in [crate::api::GREET, &document] {
        let (status, body) = crate::api::register(&app, text).await;
        assert_eq!(status, 200, "{body}");
    }
    let sent = async |token: &str| {
        let asked = post(&app, "/ingress/pushed", r#"{"who":"Ada"}"#);
        let (status, body) = asked.header("authorization", token).answer().await;
        format!("{status} {}", body["code"].as_str().unwrap_or_default())
    };
    let bearer = async |client: &str, resource: &str| {
        format!("Bearer {}", provider.token(client, resource).await)
    };
    let good = bearer("worker", "urn:noetl").await;
    assert_eq!(sent(&good).await, "202 ");
    assert_eq!(sent(&bearer("viewer", "urn:noetl").await).await, "403 service_account_wrong");
    assert_eq!(sent(&bearer("worker", "urn:other").await).await, "403 audience_wrong");
    let (head, tail) = good.rsplit_once('.').expect("a signature");
    let turned: String = tail.chars().rev().collect();
    assert_eq!(sent(&format!("{head}.{turned}")).await, "401 token_wrong");
    assert_eq!(sent("Bearer a.b.c").await, "401 token_wrong");
    assert_eq!(sent("Bearer").await, "401 token_malformed");
    let absent = post(&app, "/ingress/pushed", "{}").answer().await;
    assert_eq!((absent.0, &absent.1["code"]), (401, &json!("token_missing")));
    app.close().await;
    early.close().await;
}
