//! Reads the settings of a listener from the document of its push subscription.
//!
//! The document may predate validation. An invalid value is an error rather than ignored: a
//! misspelled replay window must not become no window.

use std::sync::Arc;

use noetl_model::Value;
use noetl_playbook::Subscription;
use noetl_playbook::subscription::{
    PAYLOAD_FROM, PUSH_ISSUER, SIGNED, SignedAt, TOLERANCE_SECS, TOLERANCE_SECS_MAX, VerifyKind,
    is_issuer, is_signed_form,
};

use super::ListenerError;

/// Settings of a listener for a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Listener {
    pub name: String,
    /// Path of the subscription's document.
    pub path: String,
    /// Source kind, such as `webhook` or `pubsub`. Default: `webhook`.
    pub source: String,
    /// Authentication that senders must pass.
    pub verify: ListenerVerify,
    /// Playbook that a message starts.
    pub playbook: String,
    /// Part of the message whose fields are copied to the top level of the payload.
    pub payload_from: String,
    /// Pool that runs the execution.
    pub execution_pool: Option<String>,
    /// Section `headers` of the document: directives and trust in unsigned headers.
    pub headers: Option<Value>,
}

/// A listener that this server serves itself.
#[derive(Debug, Clone)]
pub struct OpenListener {
    pub name: String,
    /// Authentication that senders must pass.
    pub verify: ListenerVerify,
    /// Document of the subscription, with the path at which it is registered.
    pub subscription: Arc<Subscription>,
}

/// Authentication of senders, with its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ListenerVerify {
    pub kind: VerifyKind,
    /// Header that carries the signature, in lower case.
    pub header: Option<String>,
    /// Secret text, read from the credential.
    pub secret: Option<String>,
    /// Required audience of an OIDC token.
    pub audience: Option<String>,
    pub service_account: Option<String>,
    /// Text before the signature in its header, such as `sha256=`.
    pub prefix: Option<String>,
    /// Header and tolerance of the signed time, if the document requires one.
    pub signed_at: Option<SignedAt>,
    /// Required issuer of an OIDC token.
    pub issuer: String,
}

impl std::fmt::Debug for ListenerVerify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenerVerify").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Returns a field's trimmed text, or `None` if it is empty or not text.
pub(super) fn text(of: &Value, field: &str) -> Option<String> {
    let text = of.get(field).and_then(Value::as_str).map(str::trim);
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The `spec` of a subscription document, with its path.
pub(super) struct SubscriptionSpec<'a> {
    pub(super) path: &'a str,
    pub(super) spec: &'a Value,
}

impl SubscriptionSpec<'_> {
    /// Returns the listener's settings, and the name of the credential that contains its secret.
    pub(super) fn listener(&self, name: &str) -> Result<(Listener, Option<String>), ListenerError> {
        let (verify, alias) = self.verify()?;
        let dispatch = self.section("dispatch");
        let listener = Listener {
            name: name.to_owned(),
            path: self.path.to_owned(),
            source: text(self.spec, "source").unwrap_or_else(|| "webhook".to_owned()),
            verify,
            playbook: self.needed(dispatch, "playbook", "dispatch.playbook")?,
            payload_from: text(dispatch, "payload_from").unwrap_or_else(|| PAYLOAD_FROM.into()),
            execution_pool: text(dispatch, "execution_pool"),
            headers: self.spec.get("headers").filter(|headers| !headers.is_null()).cloned(),
        };
        Ok((listener, alias))
    }

    fn section(&self, name: &str) -> &Value {
        self.spec.get(name).unwrap_or(&Value::Null)
    }

    /// Returns the authentication of senders, and the name of the credential with the secret.
    pub(super) fn verify(&self) -> Result<(ListenerVerify, Option<String>), ListenerError> {
        let verify = self.section("ingress").get("verify").unwrap_or(&Value::Null);
        let kind = self.needed(verify, "type", "ingress.verify.type")?;
        let kind = VerifyKind::from_text(&kind);
        let kind = kind.ok_or_else(|| self.incomplete("ingress.verify.type"))?;
        let header = text(verify, "header").map(|header| header.to_lowercase());
        let alias = match kind {
            VerifyKind::HmacSha256 if header.is_none() => {
                return Err(self.incomplete("ingress.verify.header"));
            }
            VerifyKind::HmacSha256 | VerifyKind::Bearer => {
                Some(self.needed(verify, "secret", "ingress.verify.secret")?)
            }
            VerifyKind::PubsubOidc => {
                self.needed(verify, "audience", "ingress.verify.audience")?;
                self.needed(verify, "service_account", "ingress.verify.service_account")?;
                None
            }
        };
        let issuer = self.optional(verify, "issuer", "ingress.verify.issuer")?;
        if issuer.as_deref().is_some_and(|issuer| !is_issuer(issuer)) {
            return Err(self.incomplete("ingress.verify.issuer"));
        }
        let found = ListenerVerify {
            kind,
            header,
            secret: None,
            audience: text(verify, "audience"),
            service_account: text(verify, "service_account"),
            prefix: self.optional(verify, "prefix", "ingress.verify.prefix")?,
            signed_at: self.signed_at(verify)?,
            issuer: issuer.unwrap_or_else(|| PUSH_ISSUER.to_owned()),
        };
        Ok((found, alias))
    }

    fn signed_at(&self, verify: &Value) -> Result<Option<SignedAt>, ListenerError> {
        let name = "ingress.verify.timestamp_header";
        let Some(header) = self.optional(verify, "timestamp_header", name)? else {
            return Ok(None);
        };
        let name = "ingress.verify.tolerance_secs";
        let tolerance_secs = self.count(verify, "tolerance_secs", name)?;
        let tolerance_secs = tolerance_secs.unwrap_or(TOLERANCE_SECS);
        if tolerance_secs > TOLERANCE_SECS_MAX {
            return Err(self.incomplete(name));
        }
        let signed = self.optional(verify, "signed", "ingress.verify.signed")?;
        let signed = signed.unwrap_or_else(|| SIGNED.to_owned());
        if !is_signed_form(&signed) {
            return Err(self.incomplete("ingress.verify.signed"));
        }
        Ok(Some(SignedAt { header: header.to_lowercase(), tolerance_secs, signed }))
    }

    fn count(
        &self,
        of: &Value,
        field: &str,
        name: &'static str,
    ) -> Result<Option<u64>, ListenerError> {
        match of.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(found) => match found.as_u64() {
                Some(count) if count > 0 => Ok(Some(count)),
                _ => Err(self.incomplete(name)),
            },
        }
    }

    /// Returns an optional text. A value of another type is an error.
    fn optional(
        &self,
        of: &Value,
        field: &str,
        name: &'static str,
    ) -> Result<Option<String>, ListenerError> {
        match of.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.needed(of, field, name).map(Some),
        }
    }

    fn needed(&self, of: &Value, field: &str, name: &'static str) -> Result<String, ListenerError> {
        text(of, field).ok_or_else(|| self.incomplete(name))
    }

    fn incomplete(&self, field: &'static str) -> ListenerError {
        ListenerError::Incomplete { path: self.path.to_owned(), field }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(verify: Value) -> Value {
        json!({"ingress": {"verify": verify}, "dispatch": {"playbook": "a/b"}})
    }

    fn read(spec: &Value) -> Result<(Listener, Option<String>), String> {
        let document = SubscriptionSpec { path: "sub/a", spec };
        document.listener("orders").map_err(|error| error.to_string())
    }

    #[test]
    fn unusable_security_settings_are_rejected_and_not_ignored() {
        let hmac = json!({"type": "hmac_sha256", "header": "X-Sig", "secret": "hook"});
        let (listener, alias) = read(&spec(hmac.clone())).expect("a listener");
        assert_eq!(
            (listener.verify.header.as_deref(), alias.as_deref()),
            (Some("x-sig"), Some("hook"))
        );
        assert_eq!(
            (listener.verify.signed_at, listener.source.as_str(), listener.playbook.as_str()),
            (None, "webhook", "a/b")
        );
        for (field, value) in [
            ("timestamp_header", json!(7)),
            ("timestamp_header", json!("")),
            ("prefix", json!([])),
            ("issuer", json!("ftp://id.example")),
        ] {
            let mut wrong = hmac.clone();
            wrong[field] = value;
            let said = format!("Subscription 'sub/a' has no usable 'ingress.verify.{field}'");
            assert_eq!(read(&spec(wrong)).err(), Some(said));
        }
        let timed = |field: &str, value: Value| {
            let mut timed = hmac.clone();
            timed["timestamp_header"] = json!("X-Time");
            timed[field] = value;
            read(&spec(timed))
        };
        let signed_at = timed("tolerance_secs", json!(5)).expect("a listener").0.verify.signed_at;
        let signed_at = signed_at.expect("a window");
        assert_eq!((signed_at.header.as_str(), signed_at.tolerance_secs), ("x-time", 5));
        assert_eq!(signed_at.signed, "{timestamp}.{body}");
        for wrong in [json!(0), json!(-1), json!("5"), json!(90_000)] {
            assert!(timed("tolerance_secs", wrong).is_err());
        }
        for wrong in ["{body}", "{timestamp}", "{body}{timestamp}{body}"] {
            assert!(timed("signed", json!(wrong)).is_err(), "{wrong}");
        }
    }
}
