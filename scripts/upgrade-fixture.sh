#!/usr/bin/env bash
# Lets a built program of any version write the databases that the upgrade tests open, one per store, and
# adds them to the fixtures of both stores.
# usage: scripts/upgrade-fixture.sh <path of the noetl program> <commit it was built from>
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

if [ $# != 2 ]; then
  sed -n '2,4p' "$0" | cut -c 3- >&2
  exit 2
fi
noetl=$(realpath "$1")
commit=$(git rev-parse --short=12 "$2^{commit}")
place=$(mktemp -d)

finish() {
  scripts/services/postgres.sh remove "$place/postgres" || true
  rm -rf "$place"
}
trap finish EXIT
chmod 755 "$place"

url=$(scripts/services/postgres.sh start "$place/postgres")
python3 scripts/upgrade-fixture.py sqlite "$noetl" "$commit" "$place/noetl.db"
python3 scripts/upgrade-fixture.py postgres "$noetl" "$commit" "$url"
