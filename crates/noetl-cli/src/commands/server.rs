//! `noetl server`: the control plane alone. Workers are processes of their own.

use std::process::ExitCode;

use super::serve::Serve;
use crate::arguments::ServerArguments;
use crate::failure::{Failure, Kind};
use crate::stores::Place;

pub(crate) fn main(arguments: ServerArguments) -> Result<ExitCode, Failure> {
    let named = Place::named(arguments.database_url.as_deref())?;
    let place = named.ok_or_else(|| {
        Failure::new(Kind::Config, "no database is named").hint(
            "give --database-url postgres://user:password@host:port/database, or set \
             NOETL_DATABASE_URL, POSTGRES_HOST and its like, or NOETL_SHARDS",
        )
    })?;
    let serve = Serve {
        host: arguments.host,
        port: arguments.port,
        place,
        key_directory: None,
        slots: 0,
        policy: arguments.policy,
        hint: |_| None,
    };
    serve.main()
}
