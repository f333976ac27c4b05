#!/usr/bin/env bash
# Runs every notebook into .cache/notebooks, on a lake made for them; the first time installs and makes what they need.
# `scripts/notebooks.sh ready` does only that.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=$PWD/.cache
venv=$cache/notebooks-venv
lake=$cache/notebook-lake
out=$cache/notebooks
mkdir -p "$out"

# What was made stays until what it was made from changes: a digest of that lies beside it.
digest() { cat "$@" | sha256sum | cut -c1-64; }
fresh() { [ -f "$1.made" ] && [ "$(cat "$1.made")" = "$2" ]; }

install() {
  local wanted
  wanted=$(digest notebooks/requirements.txt)
  if fresh "$venv" "$wanted" && [ -x "$venv/bin/python" ]; then return; fi
  echo "Installing Jupyter and its kin into .cache/notebooks-venv"
  rm -rf "$venv" "$venv.made"
  python3 -m venv "$venv" &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --require-hashes -r notebooks/requirements.txt &&
    echo "$wanted" >"$venv.made"
}

# The one waits for a network, the other computes.
install &
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

# Two at a time: each waits for the lake now and then. The last ones take longest.
status=0
printf '%s\n' notebooks/*.ipynb | sort -r | xargs -P 2 -n 1 "$venv/bin/python" notebooks/run.py "$out" || status=1
for script in notebooks/*.ts; do
  begun=$(date +%s.%N)
  failed=
  node -r ./scripts/node24.cjs "$script" "$out" || failed='  FAILED'
  printf '%-28s%6.1f s%s\n' "$(basename "$script")" "$(echo "$(date +%s.%N) $begun" | awk '{ print $1 - $2 }')" "$failed"
  [ -z "$failed" ] || status=1
done
[ "$status" = 0 ] && echo "Open .cache/notebooks/*.html"
exit "$status"
