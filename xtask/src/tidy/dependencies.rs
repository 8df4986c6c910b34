//! The borders between the crates: what must not be reachable from where.
//!
//! Dev-dependencies are free, since nothing that ships is built from them. A crate answers for what
//! it depends on in the workspace too, so a border cannot be walked around.

use serde_json::Value;

use super::{Finding, tree::Tree};

/// Crates that decide; they know no time, disk, network or chance.
const PURE: [&str; 5] =
    ["noetl-model", "noetl-template", "noetl-playbook", "noetl-engine", "noetl-compat"];
const IMPURE: [&str; 8] =
    ["tokio", "sqlx", "rusqlite", "axum", "async-nats", "reqwest", "rand", "object_store"];

/// Crates that say what is asked of a database or a bus, and know no driver of either.
const SEAMS: [&str; 2] = ["noetl-store", "noetl-bus"];
const DRIVERS: [&str; 5] = ["sqlx", "rusqlite", "async-nats", "reqwest", "object_store"];

/// Crates that know traits only; which adapter stands behind them is the program's choice. Each reaches the services
/// below it, so the list has the topmost ones.
const NEUTRAL: [&str; 5] =
    ["noetl-control", "noetl-local", "noetl-server", "noetl-sources", "noetl-worker"];

/// Crates that run in processes of their own and know a control plane only by its API.
const REMOTE: [&str; 2] = ["noetl-worker", "noetl-sources"];
const SERVICES: [&str; 2] = ["noetl-identity", "noetl-control"];

/// Crates below the server that authenticate callers. They know the secrets, and neither executions nor routes.
const ACCESS: [&str; 1] = ["noetl-access"];
const ABOVE_ACCESS: [&str; 2] = ["noetl-journal", "axum"];

const ADAPTERS: [&str; 4] = ["noetl-store-", "noetl-bus-", "noetl-blobs", "noetl-otlp"];

/// Checks the answer of `cargo metadata --no-deps`.
pub(super) fn check(metadata: &Value, tree: &Tree) -> Vec<Finding> {
    let pure = PURE.iter().flat_map(|crate_name| {
        reached(metadata, crate_name)
            .into_iter()
            .filter(|edge| IMPURE.contains(&edge.to.as_str()))
            .map(|edge| edge.finding(tree, crate_name, "take the value as an argument instead"))
    });
    let seams = SEAMS.iter().flat_map(|crate_name| {
        reached(metadata, crate_name)
            .into_iter()
            .filter(|edge| DRIVERS.contains(&edge.to.as_str()))
            .map(|edge| edge.finding(tree, crate_name, "put the driver behind an adapter"))
    });
    let neutral = NEUTRAL.iter().flat_map(|crate_name| {
        reached(metadata, crate_name)
            .into_iter()
            .filter(|edge| ADAPTERS.iter().any(|adapter| edge.to.starts_with(adapter)))
            .map(|edge| edge.finding(tree, crate_name, "name the trait; noetl-cli picks adapters"))
    });
    let remote = REMOTE.iter().flat_map(|crate_name| {
        reached(metadata, crate_name)
            .into_iter()
            .filter(|edge| SERVICES.contains(&edge.to.as_str()))
            .map(|edge| edge.finding(tree, crate_name, "share the type in noetl-work"))
    });
    let access = ACCESS.iter().flat_map(|crate_name| {
        reached(metadata, crate_name)
            .into_iter()
            .filter(|edge| ABOVE_ACCESS.contains(&edge.to.as_str()))
            .map(|edge| edge.finding(tree, crate_name, "decide it in noetl-server"))
    });
    pure.chain(seams).chain(neutral).chain(remote).chain(access).collect()
}

/// One dependency of one crate of the workspace.
#[derive(Debug, Clone)]
struct Edge {
    from: String,
    to: String,
}

impl Edge {
    fn finding(&self, tree: &Tree, crate_name: &str, right: &str) -> Finding {
        let manifest = format!("crates/{}/Cargo.toml", self.from);
        let names = |line: &str| {
            let rest = line.trim().strip_prefix(self.to.as_str());
            rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
        };
        let line = tree.text(&manifest).lines().position(names);
        let wrong = match self.from == crate_name {
            true => format!("{crate_name} must not depend on {}", self.to),
            false => format!("{crate_name} reaches {} through {}", self.to, self.from),
        };
        Finding::new(&manifest, line.map_or(1, |at| at + 1), wrong, right)
    }
}

/// Every dependency of this crate and of the workspace crates it reaches.
fn reached(metadata: &Value, crate_name: &str) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut seen = vec![crate_name.to_owned()];
    let mut next = 0;
    while let Some(from) = seen.get(next).cloned() {
        next += 1;
        for to in dependencies(metadata, &from) {
            if !seen.contains(&to) {
                seen.push(to.clone());
            }
            let from = from.clone();
            edges.push(Edge { from, to });
        }
    }
    edges
}

/// What a crate of the workspace depends on; nothing for a crate from elsewhere.
fn dependencies(metadata: &Value, crate_name: &str) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| package["name"] == crate_name)
        .flat_map(|package| package["dependencies"].as_array().into_iter().flatten())
        .filter(|dependency| dependency["kind"] != "dev")
        .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(metadata: &Value, files: &[(&str, &str)]) -> Vec<String> {
        let findings = check(metadata, &Tree::of(files));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_pure_crate_must_not_know_the_world() {
        let metadata = json!({"packages": [
            {"name": "noetl-model", "dependencies": [
                {"name": "serde", "kind": null},
                {"name": "tokio", "kind": null},
                {"name": "rand", "kind": "dev"},
            ]},
        ]});
        let manifest = "[dependencies]\nserde = \"1\"\ntokio.workspace = true\n";
        let expected = "crates/noetl-model/Cargo.toml:3: noetl-model must not depend on tokio; \
                        take the value as an argument instead";
        let files = [("crates/noetl-model/Cargo.toml", manifest)];
        assert_eq!(said(&metadata, &files), [expected]);
    }

    #[test]
    fn a_border_cannot_be_walked_around() {
        let metadata = json!({"packages": [
            {"name": "noetl-engine", "dependencies": [{"name": "noetl-store", "kind": null}]},
            {"name": "noetl-store", "dependencies": [{"name": "tokio", "kind": null}]},
        ]});
        let expected = "crates/noetl-store/Cargo.toml:1: noetl-engine reaches tokio through \
                        noetl-store; take the value as an argument instead";
        assert_eq!(said(&metadata, &[]), [expected]);
    }

    #[test]
    fn a_seam_knows_no_driver() {
        let metadata = json!({"packages": [
            {"name": "noetl-bus", "dependencies": [
                {"name": "tokio", "kind": null},
                {"name": "async-nats", "kind": null},
            ]},
        ]});
        let expected = "crates/noetl-bus/Cargo.toml:1: noetl-bus must not depend on async-nats; \
                        put the driver behind an adapter";
        assert_eq!(said(&metadata, &[]), [expected]);
    }

    #[test]
    fn a_worker_links_no_service_of_the_control_plane() {
        let metadata = json!({"packages": [
            {"name": "noetl-worker", "dependencies": [{"name": "noetl-secrets", "kind": null}]},
            {"name": "noetl-secrets", "dependencies": [{"name": "noetl-identity", "kind": null}]},
        ]});
        let expected = "crates/noetl-secrets/Cargo.toml:1: noetl-worker reaches noetl-identity \
                        through noetl-secrets; share the type in noetl-work";
        assert_eq!(said(&metadata, &[]), [expected]);
    }

    #[test]
    fn authentication_knows_no_execution_and_no_route() {
        let metadata = json!({"packages": [
            {"name": "noetl-access", "dependencies": [
                {"name": "noetl-secrets", "kind": null},
                {"name": "axum", "kind": "dev"},
            ]},
            {"name": "noetl-secrets", "dependencies": [{"name": "noetl-journal", "kind": null}]},
        ]});
        let expected = "crates/noetl-secrets/Cargo.toml:1: noetl-access reaches noetl-journal \
                        through noetl-secrets; decide it in noetl-server";
        assert_eq!(said(&metadata, &[]), [expected]);
    }

    #[test]
    fn services_name_no_adapter_outside_their_tests() {
        let metadata = json!({"packages": [
            {"name": "noetl-server", "dependencies": [{"name": "noetl-store-sqlite", "kind": "dev"}]},
            {"name": "noetl-worker", "dependencies": [{"name": "noetl-store", "kind": null}]},
            {"name": "noetl-control", "dependencies": [{"name": "noetl-bus-nats", "kind": null}]},
        ]});
        let expected = "crates/noetl-control/Cargo.toml:1: noetl-control must not depend on \
                        noetl-bus-nats; name the trait; noetl-cli picks adapters";
        assert_eq!(said(&metadata, &[]), [expected]);
    }
}
