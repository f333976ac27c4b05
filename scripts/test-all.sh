#!/usr/bin/env bash
# Runs every test: both tiers of vitest, and behind them the Python package with its oldest and newest companions, the
# notebooks, the packed package, small benchmarks, one dbt recipe and one backtesting engine. The same commit runs the same cases.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=()
mkdir -p .cache && rm -f .cache/tests*.json

# Tests that need a browser or a Python package wait until this file names what the machine has, and then insist on it.
export PITLAKE_HAD=$PWD/.cache/had
rm -f "$PITLAKE_HAD"
required=()

# Installs Chromium if the system's packages can be reached; the page is tested in it.
install_browser() {
  if command -v chromium >/dev/null; then return; fi
  if [ "$(id -u)" != 0 ] || ! timeout 60 apt-get update -qq >/dev/null 2>&1; then
    echo "no chromium and no packages: the page is tested without a browser"
    return 1
  fi
  timeout 240 apt-get install -y -qq --no-install-recommends chromium >/dev/null || echo "chromium was not installed"
}

# Whether a Python package index answers.
packages_answer() {
  timeout 60 "$(scripts/pip.sh)" download -q --disable-pip-version-check --no-deps --no-cache-dir -d .cache/probe six
}

# Installs the Python environments. Without a package index the tests that need one are left out and counted as such.
install_peers() {
  local name pid browser pids=()
  install_browser &
  browser=$!
  for name in peers readers s3 calendars python-oldest python-newest; do
    timeout 240 scripts/peers.sh "$name" >/dev/null &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || true; done
  if wait "$browser"; then required+=(chromium); fi
  for name in peers readers s3 calendars python-newest; do
    if [ -f ".cache/$name-venv.made" ] || packages_answer >/dev/null 2>&1; then required+=("$name"); else echo "no Python packages for $name"; fi
  done
  echo "${required[*]}" >"$PITLAKE_HAD.new" && mv "$PITLAKE_HAD.new" "$PITLAKE_HAD"
}

# Runs make targets one after the other.
run_targets() {
  local target start
  for target; do
    start=$SECONDS
    if make --no-print-directory $target >".cache/target-${target%% *}.log" 2>&1; then
      echo "=== make $target: passed in $((SECONDS - start)) s"
    else
      echo "=== make $target: FAILED after $((SECONDS - start)) s"
      echo "$target" >>.cache/targets-failed
    fi
    tail -n 40 ".cache/target-${target%% *}.log"
  done
}

rm -f .cache/targets-failed
PITLAKE_TESTS=all vitest run --reporter=default --reporter=json --outputFile.json=.cache/tests.json &
tests=$!
install_peers

targets=(pack notebooks bench-quick)
if [ -f .cache/python-oldest-venv.made ] && [ -f .cache/python-newest-venv.made ]; then
  targets+=(test-python "test-recipes RECIPES=dbt" "test-engines ENGINES=backtesting")
else
  echo "no Python packages for python-oldest and python-newest: the Python package, dbt and engines are not tested"
fi

# The tests keep all cores at work: beside them a notebook takes longer than it may.
wait "$tests" || failed+=(vitest)
run_targets "${targets[@]}"
[ ! -f .cache/targets-failed ] || mapfile -t -O "${#failed[@]}" failed <.cache/targets-failed
reports=(.cache/tests.json)
for name in oldest newest; do [ ! -f ".cache/tests-python-$name.json" ] || reports+=(".cache/tests-python-$name.json"); done
[ ${#failed[@]} -eq 0 ] || echo "failed: ${failed[*]}"
node scripts/counts.ts "${reports[@]}" || failed+=(counts)
[ ${#failed[@]} -eq 0 ]
