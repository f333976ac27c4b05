#!/usr/bin/env bash
# Packs the project, installs the package in an empty folder and runs it there, with the system's own Node in front.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cd "$root"
npm pack --silent --pack-destination "$folder" >/dev/null

# The repository's own node_modules must not help: the package has to bring what it needs.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vF "$root/" | paste -sd: -)
export PATH
mkdir "$folder/empty"
cd "$folder/empty"
npm init -y >/dev/null
npm install --ignore-scripts --no-audit --no-fund --loglevel=error "$folder"/*.tgz

expect() {
  local what=$1
  shift
  "$@" >"$folder/out" 2>"$folder/err" || { cat "$folder/err" >&2; echo "pack check: failed: $*" >&2; exit 1; }
  grep -qi -- "$what" "$folder/out" || { echo "pack check: $* does not say '$what'" >&2; exit 1; }
}
expect usage npx --no-install pitlake --help
expect supply/current_pit npx --no-install pitlake catalog list
for page in README.md CHANGELOG.md ARCHITECTURE.md docs/trust.md docs/decisions/0003-redate.md; do
  [ -f "node_modules/pitlake/$page" ] || { echo "pack check: the package lacks $page" >&2; exit 1; }
done
expect usage node node_modules/pitlake/dist/launch.cjs --help
expect openLake "$(npm root)/.bin/node" -p "Object.keys(require('pitlake')).join()"
echo "pack check: the package works in an empty folder ($(du -h "$folder"/*.tgz | cut -f1), system node $(node --version))"
