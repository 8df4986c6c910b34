#!/usr/bin/env bash
# Starts an OpenID Connect provider for tests (oidc-provider, from npm) on a free port of this machine
# and prints its address as the first line. It gives tokens by client credentials: the client `<role>`
# or `<role>@<tenant>`, whose secret is `secret`, gets one with that role. The client `page` is that of a
# browser: whoever comes with it is signed in at once, as an operator. It ends when its standard
# input is closed, so that it cannot outlive the test that started it.
#
# The first run installs it into target/services; later runs, and others at the same time, find it.
# With the argument `install` it does only that.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

PROVIDER=9.13.3
home=$(target_dir)/services/oidc-$PROVIDER

install_provider() {
  [ -e "$home/installed" ] && return
  rm -rf "$home"
  mkdir -p "$home"
  npm install --silent --no-audit --no-fund --prefix "$home" "oidc-provider@$PROVIDER"
  touch "$home/installed"
}

mkdir -p "$(dirname "$home")"
# One installs while the others wait; the lock goes with the shell that holds it.
(flock 9 && install_provider) 9>"$home.lock" >&2
[ "${1:-}" = install ] && exit

# Renamed into place: another test may be starting the program just now, and must not read half of it.
program=$home/oidc.mjs
cp "$(dirname "$0")/oidc.mjs" "$program.$$"
mv -f "$program.$$" "$program"
exec node "$program"
