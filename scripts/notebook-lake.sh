#!/usr/bin/env bash
# Makes the lake of the notebooks in .cache/notebook-lake where it is not there yet, or not of the programs that make it.
set -euo pipefail
cd "$(dirname "$0")/.."

lake=$PWD/.cache/notebook-lake
mkdir -p .cache
# Who comes while it is made waits for it.
if command -v flock >/dev/null; then
  exec 9>.cache/notebook-lake.lock
  flock 9
fi
fresh() { [ -f "$1.made" ] && [ "$(cat "$1.made")" = "$2" ]; }

# The programs that make the lake, and the views in it; commands, queries and pages that only read it do not count.
wanted=$(find catalog src scripts/notebook-lake.ts -type f -not -path 'src/interfaces/commands/*' -not -path 'src/query/*' -not -path 'src/interfaces/report/*' | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-64)
if ! fresh "$lake" "$wanted" || [ ! -f "$lake/lake.duckdb" ] || [ ! -f "$lake.provider.json" ]; then
  echo "Making the lake of the notebooks: eighty weekly polls of the sandbox"
  rm -f "$lake.made"
  node -r ./scripts/fixed-node.cjs scripts/notebook-lake.ts "$lake"
  echo "$wanted" >"$lake.made"
elif ! grep -qF "$lake" "$lake/lake.sql"; then
  # The checkout was moved: the views name files by their full path.
  node scripts/launch.cjs views --data "$lake"
fi
