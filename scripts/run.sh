#!/usr/bin/env bash
# Builds bin/noetl with the profile `quick` and starts server and worker on an embedded database.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

provide_build_needs
warn_without_python
need_disk 3 "the first build"
if [ ! -e "$(target_dir)/quick/noetl" ]; then
  say "Building noetl. The first build takes about 6 minutes on two cores, a later one less than a minute."
fi
# The web UI builds beside the program, which waits for it only at the end.
scripts/web.sh beside cargo build --locked --profile quick --package noetl-cli
install_program "$(target_dir)/quick/noetl"

# The program itself prints everything that depends on its address.
cat >&2 <<TEXT

To run a playbook to completion without a server, in a second terminal:

  bin/noetl run examples/hello.yaml --set who=Ada

To pass options: make run ARGS='--port 9000'.

TEXT
exec bin/noetl dev "$@"
