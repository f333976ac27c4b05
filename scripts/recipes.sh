#!/usr/bin/env bash
# Runs the recipes of deploy/ for dbt, Dagster and Airflow on small lakes, each where its packages can be had.
# `scripts/recipes.sh dbt` runs only those named.
set -euo pipefail
cd "$(dirname "$0")/.."

had=()
[ $# -gt 0 ] || set -- dbt dagster airflow
for name in "$@"; do
  if timeout 480 scripts/peers.sh "$name" >/dev/null; then had+=("$name"); else echo "$name cannot be had here"; fi
done
[ ${#had[@]} -gt 0 ] || exit 0

# What is here must be found.
export PITLAKE_RECIPES="${had[*]}" PITLAKE_REQUIRED="${had[*]}"
vitest run test/cli/recipes.test.ts
