#!/usr/bin/env bash
# Runs whole what .ci/run leaves out or tries a share of, one after the other, and writes into docs/nightly.md at which
# commit that was, how long each took and what it said last. `scripts/nightly.sh NAME…` runs only those targets, and writes
# nothing. What each said stands in .cache/nightly/NAME.log.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(test-watch test-years test-s3-race test-spark test-recipes test-engines bench bench-python steps torture fuzz powercuts cuts mutants mutants-sql)
chosen=("$@")
[ $# -gt 0 ] || chosen=("${all[@]}")
logs=.cache/nightly
mkdir -p "$logs"

rows=() failed=()
for name in "${chosen[@]}"; do
  line=("$name")
  [ "$name" != mutants-sql ] || line=(mutants ROOM=sql)
  start=$SECONDS how=good
  echo "=== make ${line[*]}"
  make --no-print-directory "${line[@]}" >"$logs/$name.log" 2>&1 || { how=failed && failed+=("$name"); }
  said=$(sed 's/\x1b\[[0-9;]*m//g' "$logs/$name.log" | grep -v '^[[:space:]]*$' | tr '|' '/' | sed 's/^ *//' || true)
  last=$(grep -E 'passed|noticed|within|ABOVE' <<<"$said" | tail -1 || tail -1 <<<"$said")
  rows+=("| \`make ${line[*]}\` | $how | $(((SECONDS - start + 59) / 60)) | ${last:0:100} |")
  echo "${rows[-1]}"
done

if [ $# -eq 0 ]; then
  {
    sed '/^## The last full run/q' docs/nightly.md
    printf '\nOf %s at %s, on %s cores.\n\n' "$(date -u +%F)" "$(git rev-parse --short HEAD)" "$(nproc)"
    printf '| target | ended | minutes | said last |\n| --- | --- | ---: | --- |\n'
    printf '%s\n' "${rows[@]}"
  } >.cache/nightly.md
  mv .cache/nightly.md docs/nightly.md
fi
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}, see $logs" >&2 && exit 1; }
