//! Manages access tokens directly on a database.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use noetl_api::tokens::{MadeToken, NewToken, TokenList, TokenRevoked};
use noetl_model::{Clock as _, Tenant, Timestamp};
use noetl_secrets::{DirectTokens, TokenError, TokenRequest, UnknownRole};
use noetl_server::token_view;
use noetl_store::{StoreError, SystemClock};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::{DatabaseFlags, Flags};
use crate::error::{CliError, ErrorKind};
use crate::settings;
use crate::stores::StoreLocation;

/// Access tokens of one tenant.
pub(super) struct Direct {
    tokens: DirectTokens,
    tenant: Tenant,
}

/// Opens the database, runs `work`, and closes the database.
pub(super) fn run(
    url: &str,
    tenant: Option<&str>,
    work: impl AsyncFnOnce(&Direct) -> Result<ExitCode, CliError>,
) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    runtime.block_on(async {
        let flags = Flags::<DatabaseFlags>::with_values([("database.url", Some(url))]);
        let stores = StoreLocation::configured(&flags.settings())?.open().await?;
        let direct = Direct {
            tokens: DirectTokens::new(stores.routed.clone(), Arc::new(SystemClock), who()),
            tenant: tenant.map(Tenant::new).unwrap_or_default(),
        };
        let outcome = work(&direct).await;
        drop(direct);
        stores.close().await;
        outcome
    })
}

impl Direct {
    pub(super) async fn create(&self, request: NewToken) -> Result<MadeToken, CliError> {
        let role = request.role.parse();
        let request = TokenRequest {
            name: request.name,
            role: role
                .map_err(|wrong: UnknownRole| CliError::from_error(ErrorKind::User, &wrong))?,
            lasts: request.expires_in.map(Duration::from_secs),
            pool: request.pool,
        };
        let made = self.tokens.create(&self.tenant, request).await;
        let (row, token) = made.map_err(|error| refused(&error))?;
        Ok(MadeToken { view: token_view(row), token })
    }

    pub(super) async fn list(&self) -> Result<TokenList, CliError> {
        let tokens = self.tokens.list(&self.tenant).await.map_err(|error| unanswered(&error))?;
        Ok(TokenList { tokens: tokens.into_iter().map(token_view).collect() })
    }

    pub(super) async fn revoke(&self, id: &str) -> Result<TokenRevoked, CliError> {
        let revoked = self.tokens.revoke(&self.tenant, id).await;
        match revoked.map_err(|error| refused(&error))? {
            true => Ok(TokenRevoked { id: id.to_owned(), status: "revoked".to_owned() }),
            false => {
                let message = format!("tenant {} has no token '{id}'", self.tenant);
                Err(CliError::new(ErrorKind::User, message)
                    .hint("`noetl token list` shows the ids there are"))
            }
        }
    }
}

/// Returns the current time by the system clock.
pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

/// Converts a reply to the JSON that a server would return.
pub(super) fn body(reply: &impl Serialize) -> Result<Value, CliError> {
    serde_json::to_value(reply).map_err(|error| CliError::from_error(ErrorKind::Internal, &error))
}

/// Returns the actor for the audit: the user name from the environment, if known.
fn who() -> String {
    let user = settings::variable("USER").or_else(|| settings::variable("LOGNAME"));
    match user {
        Some(user) => format!("{user} (on the database)"),
        None => "on the database".to_owned(),
    }
}

fn refused(error: &TokenError) -> CliError {
    let kind = match error {
        TokenError::Store(_) | TokenError::Unrecorded(_) => ErrorKind::Config,
        TokenError::Name | TokenError::Lasts | TokenError::Pool => ErrorKind::User,
    };
    CliError::from_error(kind, error)
}

fn unanswered(error: &StoreError) -> CliError {
    CliError::from_error(ErrorKind::Config, error)
}
