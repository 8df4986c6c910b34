//! Template scope of a command, built from the state that the command carries.

use std::sync::Arc;

use noetl_model::scope::{CommandScope, ScopePart};
use noetl_model::{ExecutionId, Map};
use noetl_template::{
    ExecutionIdentity, Iteration, KeychainNames, Names, Scope, ValueSlot, ValueSource, from_json,
    from_json_owned,
};

/// Builds the scope of a command's templates. The caller sets the time and the entropy.
pub fn scope_of(execution: ExecutionId, carried: CommandScope) -> Scope {
    let mut workload = names(carried.workload);
    let mut ctx = names(carried.ctx);
    let mut results = names(carried.steps);
    let mut previous: Option<ValueSlot> = carried.previous.map(|data| from_json_owned(data).into());
    for blob in carried.blobs {
        let slot = ValueSlot::away(ValueSource::Blob {
            reference: blob.reference,
            fields: from_json(&blob.fields),
        });
        match blob.among {
            ScopePart::Workload => drop(workload.insert(blob.name, slot)),
            ScopePart::Ctx => drop(ctx.insert(blob.name, slot)),
            ScopePart::Steps => drop(results.insert(blob.name, slot)),
            ScopePart::Previous => previous = Some(slot),
            // Read before the run starts, and passed to it as task results.
            ScopePart::Earlier => {}
        }
    }
    let iteration = carried.iteration.map(|iteration| Iteration {
        name: iteration.name,
        item: from_json_owned(iteration.item).into(),
        index: iteration.index,
        total: iteration.total,
        vars: Arc::default(),
    });
    let declared = carried.keychain.keys().map(|name| Arc::from(name.as_str()));
    Scope {
        keychain: Some(Arc::new(KeychainNames::new(declared))),
        workload: Arc::new(workload),
        ctx: Arc::new(ctx),
        results: Arc::new(results),
        tasks: Arc::new(carried.tasks),
        step: Arc::new(names(carried.step)),
        previous,
        iteration,
        spec: carried.spec.as_ref().map(from_json),
        env: Arc::new(carried.env),
        identity: ExecutionIdentity {
            execution,
            catalog: carried.catalog,
            path: carried.path,
            version: carried.version,
            parent: carried.parent,
        },
        ..Scope::default()
    }
}

fn names(map: Map) -> Names {
    map.into_iter().map(|(name, value)| (name.into(), from_json_owned(value).into())).collect()
}
