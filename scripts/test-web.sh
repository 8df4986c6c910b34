#!/usr/bin/env bash
# Checks the web UI: its units, or the real server in a browser.
# Without Node or Chromium, skips the parts that need them; with CI set, fails instead.
#
# usage: scripts/test-web.sh units      types, unit tests, and what the first load costs
#        scripts/test-web.sh <path of the noetl program, built with the UI> [journey..]
#
# JOURNEYS=long measures with 100 000 executions, 100 000 events and 20 MB instead, and JOURNEYS=pictures
# keeps pictures of the pages in docs/images (EXECUTIONS, ITEMS: fewer than that).
# UI_DIST=1 shows web/dist as it is instead of what the program carries.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# The path of a browser; `command -v` would find functions of this script too.
browser_path() { type -P chromium || type -P chromium-browser || type -P google-chrome; }

if ! has node || ! has npm; then
  skip npm "install Node 20.19 or newer" "the tests of the web UI"
  exit
fi

if [ $# = 0 ]; then
  sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
  exit 2
fi
scripts/web.sh install || {
  skip "packages of the web UI" "npm ci --prefix web" "the tests of the web UI"
  exit
}
# The journeys look at what the program carries, so nothing is built here.
if [ ! -f web/dist/index.html ]; then
  say "The web UI is not built: run make web, then build the program again."
  exit 1
fi
if [ "$1" = units ]; then
  cd web
  npm run --silent check
  npm run --silent test
  npm run --silent budget
  exit
fi
program=$(realpath "$1")
shift
cd web

if ! browser=$(browser_path); then
  skip Chromium "apt-get install chromium" "the journeys through the web UI"
  exit
fi
CHROMIUM=$browser node e2e/drive.mjs "$program" "$@"
