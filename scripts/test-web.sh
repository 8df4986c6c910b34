#!/usr/bin/env bash
# Checks the web UI: types, unit tests, what the first load costs, then the real server in a browser.
# Without Node or Chromium says so and leaves out what needs them.
#
# usage: scripts/test-web.sh <path of the noetl program, built with the UI> [journey..]
#        scripts/test-web.sh install    only see to it that what it needs is there
#
# JOURNEYS=long measures with 100 000 executions, 100 000 events and 20 MB instead, and JOURNEYS=pictures
# keeps pictures of the pages in docs/images (EXECUTIONS, ITEMS: fewer than that).
# UI_DIST=1 shows web/dist as it is instead of what the program carries.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

# The path of a browser; `command -v` would find functions of this script too.
browser_path() { type -P chromium || type -P chromium-browser || type -P google-chrome; }

install_browser() {
  if browser_path >/dev/null; then return; fi
  (
    NEEDED_PACKAGES=(chromium)
    NEEDED_TEXTS=("  chromium (shows the web UI to the tests): install the package chromium")
    provide_needs
  )
}

if ! has node || ! has npm; then
  skip "the web UI, because Node and npm are not installed"
  exit
fi

if [ "${1:-}" = install ]; then
  scripts/web.sh install || say "Without what the web UI is made of; its tests are skipped."
  install_browser || say "Without Chromium; the tests that drive the web UI are skipped."
  exit
fi

if [ $# = 0 ]; then
  sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
  exit 2
fi
program=$(realpath "$1")
shift

scripts/web.sh install || {
  skip "the web UI, because what it is made of could not be had; the reason is above"
  exit
}
cd web
if [ -z "${JOURNEYS:-}" ]; then
  npm run --silent check
  npm run --silent test
fi
# What the program carries is what is looked at, so nothing is built here.
if [ ! -f dist/index.html ]; then
  say "The web UI is not built: run make web, then build the program again."
  exit 1
fi
npm run --silent budget

if ! browser=$(browser_path); then
  skip "the journeys through the web UI, because Chromium is not installed"
  exit
fi
CHROMIUM=$browser node e2e/drive.mjs "$program" "$@"
