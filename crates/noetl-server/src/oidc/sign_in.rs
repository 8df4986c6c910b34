//! How people sign in at the provider with a browser: a code for a page, a token for the code.
//!
//! The page is a public client with a proof key (PKCE), so there is no secret to keep. The server trades
//! the code, because the page may ask nobody else, and gives out only a token it would take itself.

use std::sync::PoisonError;
use std::time::Instant;

use serde::Deserialize;

use super::{Discovery, KEPT, Oidc, OidcError, refused};

/// What a page asks the provider for.
const SCOPE: &str = "openid profile email";

/// Where people are sent to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) authorization_endpoint: String,
    /// As whom the page asks.
    pub(crate) client_id: String,
    /// For what.
    pub(crate) scope: &'static str,
    /// Whom the token is to be made for.
    pub(crate) audience: String,
}

/// What a page got from the provider.
pub(crate) struct Proof<'a> {
    pub(crate) code: &'a str,
    /// What the page made its challenge from.
    pub(crate) verifier: &'a str,
    /// Where the provider sent the person back to.
    pub(crate) redirect: &'a str,
}

/// A token that is taken here.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) token: String,
    /// For how many seconds it is good, if the provider says so.
    pub(crate) expires_in: Option<u64>,
}

/// Where the provider answers.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    authorization: String,
    token: String,
}

/// What the provider gives for a code.
#[derive(Deserialize)]
struct Tokens {
    access_token: Option<String>,
    id_token: Option<String>,
    expires_in: Option<u64>,
}

/// Why it gives nothing.
#[derive(Default, Deserialize)]
struct Refused {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Oidc {
    /// Where people sign in; nothing when the page has no client there.
    pub(crate) async fn place(&self) -> Result<Option<Place>, OidcError> {
        let settings = &self.0.settings;
        let Some(client_id) = settings.client_id.clone() else { return Ok(None) };
        let endpoints = self.endpoints().await.map_err(OidcError::Unavailable)?;
        Ok(Some(Place {
            authorization_endpoint: endpoints.authorization,
            client_id,
            scope: SCOPE,
            audience: settings.audience.clone(),
        }))
    }

    /// The token for a code. The one for the API is preferred; a provider that gives none that can be
    /// verified gives an identity, which is taken when it is made for the same audience.
    pub(crate) async fn traded(&self, proof: &Proof<'_>) -> Result<Option<Granted>, OidcError> {
        let Some(client_id) = &self.0.settings.client_id else { return Ok(None) };
        let endpoints = self.endpoints().await.map_err(OidcError::Unavailable)?;
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", client_id),
            ("code", proof.code),
            ("code_verifier", proof.verifier),
            ("redirect_uri", proof.redirect),
        ];
        let failed = |error: reqwest::Error| {
            // The address alone: the form is nobody's to read in a log.
            OidcError::Unavailable(format!("{}: {}", endpoints.token, error.without_url()))
        };
        let said = self.0.http.post(&endpoints.token).form(&form).send().await.map_err(failed)?;
        if said.status().is_server_error() {
            let why = format!("{} answered {}", endpoints.token, said.status());
            return Err(OidcError::Unavailable(why));
        }
        if !said.status().is_success() {
            let why = said.json::<Refused>().await.unwrap_or_default();
            let why = format!("{} {}", why.error, why.error_description);
            let why = match why.trim() {
                "" => "the identity provider did not take the code".to_owned(),
                why => format!("the identity provider did not take the code: {why}"),
            };
            return Err(OidcError::Refused(why));
        }
        let tokens: Tokens = said.json().await.map_err(failed)?;
        let mut why = refused("the identity provider gave none");
        for token in [tokens.access_token, tokens.id_token].into_iter().flatten() {
            match self.caller(&token).await {
                Ok(_) => return Ok(Some(Granted { token, expires_in: tokens.expires_in })),
                Err(failure) => why = failure,
            }
        }
        Err(why)
    }

    /// Read once in a while: a provider rarely moves.
    async fn endpoints(&self) -> Result<Endpoints, String> {
        let known = self.0.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read, endpoints)) = known
            && read.elapsed() < KEPT
        {
            return Ok(endpoints);
        }
        let Discovery { authorization_endpoint, token_endpoint, .. } = self.discovery().await?;
        let (Some(authorization), Some(token)) = (authorization_endpoint, token_endpoint) else {
            return Err("the identity provider signs nobody in with a browser".to_owned());
        };
        let endpoints = Endpoints { authorization, token };
        let kept = Some((Instant::now(), endpoints.clone()));
        *self.0.endpoints.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(endpoints)
    }
}
