//! Browser sign-in at the identity provider (authorization code flow with PKCE).
//!
//! The web UI is a public client with PKCE, so there is no client secret. The server exchanges the
//! authorization code, because the page may call no other origin, and returns only a token that the
//! server itself accepts.

use std::sync::PoisonError;
use std::time::Instant;

use serde::Deserialize;

use super::{Discovery, KEPT, Oidc, OidcError, refused};

/// Scopes that the web UI requests.
const SCOPE: &str = "openid profile email";

/// Parameters of the authorization request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderEndpoint {
    pub authorization_endpoint: String,
    /// Client ID of the web UI.
    pub client_id: String,
    /// Requested scopes, separated by spaces.
    pub scope: &'static str,
    /// Audience that the token must have.
    pub audience: String,
}

/// Result of the authorization request.
pub struct CodeExchange<'a> {
    pub code: &'a str,
    /// PKCE code verifier, from which the page derived its challenge.
    pub verifier: &'a str,
    /// Redirect URI of the authorization request.
    pub redirect: &'a str,
}

/// A token that this server accepts.
#[derive(Debug)]
pub struct IssuedToken {
    pub token: String,
    /// Lifetime in seconds, if the provider states it.
    pub expires_in: Option<u64>,
}

/// OAuth endpoints of the provider.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    authorization: String,
    token: String,
}

/// Token response of the provider.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: Option<String>,
    id_token: Option<String>,
    expires_in: Option<u64>,
}

/// Error response of the provider.
#[derive(Default, Deserialize)]
struct ProviderError {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Oidc {
    /// Returns the parameters for the authorization request, or `None` if the web UI has no client
    /// ID.
    pub async fn endpoint(&self) -> Result<Option<ProviderEndpoint>, OidcError> {
        let settings = &self.0.settings;
        let Some(client_id) = settings.client_id.clone() else { return Ok(None) };
        let endpoints = self.endpoints().await.map_err(OidcError::Unavailable)?;
        Ok(Some(ProviderEndpoint {
            authorization_endpoint: endpoints.authorization,
            client_id,
            scope: SCOPE,
            audience: settings.audience.clone(),
        }))
    }

    /// Exchanges an authorization code for a token. Prefers the access token. If the server cannot
    /// verify that one, returns the ID token, provided that it has the required audience.
    pub async fn traded(&self, proof: &CodeExchange<'_>) -> Result<Option<IssuedToken>, OidcError> {
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
            // Only the address: the form contains secrets and must not be logged.
            OidcError::Unavailable(format!("{}: {}", endpoints.token, error.without_url()))
        };
        let said = self.0.http.post(&endpoints.token).form(&form).send().await.map_err(failed)?;
        if said.status().is_server_error() {
            let why = format!("{} answered {}", endpoints.token, said.status());
            return Err(OidcError::Unavailable(why));
        }
        if !said.status().is_success() {
            let why = said.json::<ProviderError>().await.unwrap_or_default();
            let why = format!("{} {}", why.error, why.error_description);
            let why = match why.trim() {
                "" => "the identity provider did not take the code".to_owned(),
                why => format!("the identity provider did not take the code: {why}"),
            };
            return Err(OidcError::Refused(why));
        }
        let tokens: TokenResponse = said.json().await.map_err(failed)?;
        let mut why = refused("the identity provider gave none");
        for token in [tokens.access_token, tokens.id_token].into_iter().flatten() {
            match self.caller(&token).await {
                Ok(_) => return Ok(Some(IssuedToken { token, expires_in: tokens.expires_in })),
                Err(failure) => why = failure,
            }
        }
        Err(why)
    }

    /// Returns the provider's endpoints, cached for [`KEPT`].
    async fn endpoints(&self) -> Result<Endpoints, String> {
        let known = self.0.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read, endpoints)) = known
            && read.elapsed() < KEPT
        {
            return Ok(endpoints);
        }
        let Discovery { authorization_endpoint, token_endpoint, .. } = self.discovery().await?;
        let (Some(authorization), Some(token)) = (authorization_endpoint, token_endpoint) else {
            return Err(
                "the identity provider does not support signing in with a browser".to_owned()
            );
        };
        let endpoints = Endpoints { authorization, token };
        let kept = Some((Instant::now(), endpoints.clone()));
        *self.0.endpoints.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(endpoints)
    }
}
