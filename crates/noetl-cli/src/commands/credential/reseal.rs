//! `noetl credential reseal`: binds the encrypted values of a database to their tenant and name.

use std::process::ExitCode;

use noetl_config::tree::{Database, Secrets};
use noetl_secrets::{EncryptionKey, KEY_VARIABLE, KeyRotation, Resealed};
use serde_json::json;

use crate::arguments::{DbArguments, Output};
use crate::error::{CliError, ErrorKind};
use crate::output::{self, style};
use crate::stores::StoreLocation;
use crate::{keys, settings};

pub(super) fn main(arguments: &DbArguments) -> Result<ExitCode, CliError> {
    let key = key(arguments)?.ok_or_else(|| {
        CliError::new(ErrorKind::Config, "there is no encryption key").hint(format!(
            "set {KEY_VARIABLE}, or name the data directory of the server with --data"
        ))
    })?;
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    runtime.block_on(async {
        let place = StoreLocation::configured(&arguments.flags.settings())?;
        let name = place.name();
        let stores = place.open().await?;
        let resealed = KeyRotation::new(stores.routed.clone(), Some(key)).reseal().await;
        stores.close().await;
        let resealed = resealed.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
        report(&name, &resealed, arguments.output)?;
        Ok(if resealed.is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Returns the encryption key of the environment, else that of the data directory, or `None`.
pub(crate) fn key(arguments: &DbArguments) -> Result<Option<EncryptionKey>, CliError> {
    let database: Database = settings::decode(&arguments.flags.settings())?;
    let secrets: Secrets = settings::section()?;
    match secrets.encryption_key.is_some() || keys::is_in(&database.data) {
        true => keys::of_directory(&database.data).map(Some),
        false => Ok(None),
    }
}

fn report(name: &str, resealed: &Resealed, output: Output) -> Result<(), CliError> {
    let Resealed { resealed: again, bound, problems, more, is_complete } = resealed;
    if output == Output::Json {
        return output::json(&json!({
            "database": name,
            "resealed": again,
            "bound": bound,
            "problems": problems,
            "more": more,
            "complete": is_complete,
        }));
    }
    let style = style::of_stderr();
    for problem in problems {
        output::note(&format!("{}: {problem}", style.bad("wrong")));
    }
    let outcome = match is_complete {
        true => style.good("every value is bound to its tenant and name"),
        false => style.bad("not every value is bound; store or delete these, and repeat"),
    };
    output::note(&format!("{name}: {outcome} ({again} resealed)"));
    Ok(())
}
