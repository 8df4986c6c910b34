#!/usr/bin/env bash
# Runs the fuzz targets one after the other, each for SECONDS_EACH (60): libFuzzer makes up inputs by what code they
# reach. Says per target how many it tried and what they broke; an input that broke something is kept in
# target/fuzz-found, to be put into fuzz/corpus once it is mended.
#
#   SECONDS_EACH=600 TARGETS='template engine' scripts/fuzz.sh
#
# cargo-fuzz is installed into target/services when it is missing. Its flags are of the nightly compiler; the stable one takes
# them when it is told to. No sanitizer: the code under test has no `unsafe`, and is several times faster without.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

CARGO_FUZZ=0.13.2
seconds=${SECONDS_EACH:-60}
targets=$(target_dir)
mkdir -p "$targets"
targets=$(cd "$targets" && pwd)
tool=$targets/services/cargo-fuzz-$CARGO_FUZZ

if ! has cargo-fuzz && [ ! -x "$tool/bin/cargo-fuzz" ]; then
  say "installing cargo-fuzz $CARGO_FUZZ"
  cargo install --quiet --locked --root "$tool" "cargo-fuzz@$CARGO_FUZZ"
fi
PATH="$tool/bin:$PATH"
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$targets/fuzz

read -ra names <<<"${TARGETS:-$(basename -s .rs -a fuzz/fuzz_targets/*.rs | tr '\n' ' ')}"
cargo fuzz build --sanitizer none >&2
broken=0
for name in "${names[@]}"; do
  grown=$targets/fuzz-corpus/$name found=$targets/fuzz-found/$name log=$targets/fuzz-$name.log
  mkdir -p "$grown" "$found"
  seeds=("fuzz/corpus/$name")
  # What is in the examples is worth trying, and need not be kept twice.
  if [ "$name" = document ]; then seeds+=(examples); fi
  code=0
  nice cargo fuzz run --sanitizer none "$name" "$grown" "${seeds[@]}" -- -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=4096 -artifact_prefix="$found/" -print_final_stats=1 -verbosity=1 >"$log" 2>&1 || code=$?
  tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  if [ "$code" = 0 ]; then
    printf '%-10s %12s inputs in %s s: nothing found\n' "$name" "${tried:-?}" "$seconds"
  else
    broken=1
    printf '%-10s %12s inputs: BROKEN, see %s\n' "$name" "${tried:-?}" "$log"
    grep -m 3 -E 'panicked at|ERROR: libFuzzer|Test unit written' -A 1 "$log" | sed 's/^/    /'
  fi
done
exit "$broken"
