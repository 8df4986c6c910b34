#!/usr/bin/env bash
# DuckDB as a shared library, for programs built with the feature `duckdb`: from the npm package of its
# makers. Compiling it instead takes tens of minutes.
#
#   duckdb.sh install   fetch it once; prints the directory it is in
#   duckdb.sh build     build bin/noetl with it, the library beside the program
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# The newest of their packages; the driver asks for nothing that a library of 1.5 lacks.
VERSION=1.5.6-r.1

package() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo @duckdb/node-bindings-linux-x64 ;;
    Linux-aarch64) echo @duckdb/node-bindings-linux-arm64 ;;
    Darwin-arm64) echo @duckdb/node-bindings-darwin-arm64 ;;
    Darwin-x86_64) echo @duckdb/node-bindings-darwin-x64 ;;
    *)
      say "There is no ready library for $(uname -sm): build with --features duckdb-bundled."
      exit 1
      ;;
  esac
}

mkdir -p "$(target_dir)/services"
home=$(realpath "$(target_dir)/services")/duckdb-$VERSION

# fetch PACKAGE
fetch() {
  [ -e "$home/installed" ] && return
  rm -rf "$home"
  mkdir -p "$home"
  (cd "$home" && npm pack --silent "$1@$VERSION" >/dev/null && tar -xzf ./*.tgz --strip-components=1 && rm ./*.tgz)
  touch "$home/installed"
}

install() {
  local package
  package=$(package)
  (flock 9 && fetch "$package") 9>"$home.lock" >&2
}

case ${1:-} in
  install)
    install
    echo "$home"
    ;;
  build)
    install
    # The program looks for the library beside itself, wherever both are put.
    # shellcheck disable=SC2016 # $ORIGIN is for the loader.
    DUCKDB_LIB_DIR=$home cargo rustc --locked --release --package noetl-cli --bin noetl --features duckdb \
      -- -C 'link-arg=-Wl,-rpath,$ORIGIN'
    install_program "$(target_dir)/release/noetl"
    cp "$home"/libduckdb.* bin/
    ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
