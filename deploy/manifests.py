"""Checks manifests against the schemas of Kubernetes: manifests.py FILE."""

import sys

import kubernetes_validate
import yaml

# Of others: read as YAML, and their names and kinds are looked at.
OTHERS = {"keda.sh/v1alpha1", "monitoring.coreos.com/v1"}

kinds = []
with open(sys.argv[1], encoding="utf-8") as file:
    for document in yaml.safe_load_all(file):
        if document is None:
            continue
        kind, version = document["kind"], document["apiVersion"]
        kinds.append(f"{kind} {document['metadata']['name']}")
        if version not in OTHERS:
            kubernetes_validate.validate(document, "1.31", strict=True)
print("  " + ", ".join(kinds))
