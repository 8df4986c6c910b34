//! `noetl server`: starts a server without a worker. Workers are separate processes.

use std::process::ExitCode;

use noetl_config::Origin;
use noetl_secrets::KEY_VARIABLE;

use super::serve::Serve;
use crate::arguments::ServerArguments;
use crate::error::{CliError, ErrorKind};
use crate::http_options::AuthMode;
use crate::keys;
use crate::settings;
use crate::stores::StoreLocation;

pub(crate) fn main(arguments: &ServerArguments) -> Result<ExitCode, CliError> {
    let settings = arguments.retention.over(&arguments.flags.settings());
    let named = StoreLocation::named(&settings::decode(&settings)?)?;
    let location = named.ok_or_else(|| {
        let failure = CliError::new(ErrorKind::Config, "no database is named");
        if let Origin::Variable(name) = settings.origin_of("database.data") {
            return failure.hint(format!(
                "{name} replaces the database in a file and has no use in a server: unset it, or \
                 give --database-url"
            ));
        }
        failure.hint(
            "give --database-url postgres://user:password@host:port/database, or set \
             NOETL_DATABASE_URL, POSTGRES_HOST and its like, or NOETL_SHARDS",
        )
    })?;
    if keys::from_settings()?.is_none() {
        let message = format!("{KEY_VARIABLE} is not set");
        return Err(CliError::new(ErrorKind::Config, message).hint(
            "credentials are encrypted with it, by every server alike: set it to the output of \
             `openssl rand -base64 32` and keep that safe",
        ));
    }
    let serve = Serve {
        auth: AuthMode::configured(&settings, AuthMode::Open)?,
        settings,
        location,
        key_directory: None,
        slots: 0,
        subscriptions: false,
        signs_in: false,
        hint: |_| None,
    };
    serve.main()
}
