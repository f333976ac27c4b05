#!/usr/bin/env bash
# Runs every notebook into .cache/notebooks, on a lake made for them; the first time installs and makes what they need.
# `scripts/notebooks.sh ready` does only that.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=$PWD/.cache
lake=$cache/notebook-lake
out=$cache/notebooks
mkdir -p "$out"

# The one waits for a network, the other computes.
scripts/peers.sh notebooks >/dev/null &
installing=$!
made=0
scripts/notebook-lake.sh || made=$?
wait "$installing"
[ "$made" = 0 ]
[ "${1:-}" != ready ] || exit 0

export PITLAKE_DATA=$lake PYTHONPYCACHEPREFIX=$cache/pycache
export MPLCONFIGDIR=$cache/matplotlib IPYTHONDIR=$cache/ipython JUPYTER_CONFIG_DIR=$cache/jupyter JUPYTER_RUNTIME_DIR
JUPYTER_RUNTIME_DIR=$(mktemp -d)
trap 'rm -rf "$JUPYTER_RUNTIME_DIR"' EXIT
unset PITLAKE_METRICS_URL PITLAKE_METRICS_KEY PITLAKE_REGISTRY_URL PITLAKE_REGISTRY_KEY

# Two at a time, two by a process: each waits for the lake now and then. The last ones take longest.
status=0
printf '%s\n' notebooks/*.ipynb | sort -r | xargs -P 2 -n 2 "$cache/notebooks-venv/bin/python" notebooks/run.py "$out" || status=1
for script in notebooks/*.ts; do
  begun=$(date +%s.%N)
  failed=
  node -r ./scripts/fixed-node.cjs "$script" "$out" || failed='  FAILED'
  printf '%-28s%6.1f s%s\n' "$(basename "$script")" "$(echo "$(date +%s.%N) $begun" | awk '{ print $1 - $2 }')" "$failed"
  [ -z "$failed" ] || status=1
done
[ "$status" = 0 ] && echo "Open .cache/notebooks/*.html"
exit "$status"
