#!/usr/bin/env bash
# The package in python/: `scripts/python.sh wheel` builds it into python/dist; `scripts/python.sh test` builds it, installs
# it beside the oldest and the newest duckdb, pandas, polars and pyarrow that it supports, and runs its tests there;
# `scripts/python.sh figures [TIMES.json]` measures it beside DuckDB and polars on the same files;
# `scripts/python.sh engines [NAME…]` lets backtesting engines run on it, each in a venv of its own, where it can be had.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-wheel}" = figures ]; then
  scripts/notebook-lake.sh
  python=$(scripts/peers.sh python-newest)
  [ -s .cache/wide-lake.json ] || {
    rm -rf .cache/wide-lake
    node -r ./scripts/fixed-node.cjs test/python/pitlake/wide-lake.ts .cache/wide-lake >.cache/wide-lake.json
  }
  POLARS_MAX_THREADS=2 exec "$python" test/python/pitlake/figures.py .cache/wide-lake .cache/wide-lake.json .cache/notebook-lake "${@:2}"
fi

if [ "${1:-wheel}" = engines ]; then
  shift
  [ $# -gt 0 ] || set -- vectorbt backtesting zipline nautilus qlib
  scripts/notebook-lake.sh
  failed=0
  for name in "$@"; do
    if python=$(timeout 900 scripts/peers.sh "engine-$name"); then
      echo "$name"
      "$python" -m pytest -q -p no:cacheprovider "test/python/engines/test_$name.py" || failed=1
    else
      echo "$name cannot be had here"
    fi
  done
  exit "$failed"
fi

newest=$(scripts/peers.sh python-newest)
rm -rf python/dist python/build python/*.egg-info
(cd python && "$newest" -m build --wheel --no-isolation --outdir dist . >/dev/null)
rm -rf python/build python/*.egg-info
ls python/dist/*.whl
if python=$(timeout 240 scripts/peers.sh publish); then "$python" -m twine check --strict python/dist/*.whl; else echo "twine cannot be had here"; fi
[ "${1:-wheel}" = test ] || exit 0

scripts/notebook-lake.sh

# A venv of its own knows this wheel and those packages, and no folder of the project.
tried() {
  local name=$1 python clean=.cache/$1-clean
  python=$(scripts/peers.sh "$name")
  rm -rf "$clean"
  "$python" -m venv --without-pip "$clean"
  echo "$PWD/.cache/$name-venv/lib/$(ls ".cache/$name-venv/lib")/site-packages" >"$clean/lib/$(ls "$clean/lib")/site-packages/beside.pth"
  "$(scripts/pip.sh)" --python "$clean/bin/python" install --quiet --disable-pip-version-check --no-deps --no-index python/dist/*.whl
  PITLAKE_INSTALLED=1 PITLAKE_REPORT=$PWD/.cache/tests-$name.json "$clean/bin/python" -m pytest -q -p no:cacheprovider test/python/pitlake
}

rm -f .cache/tests-python-*.json
# Side by side: each waits for the command line now and then.
failed=0
tried python-oldest >.cache/python-oldest.log 2>&1 &
oldest=$!
(cd python && "$newest" -m mypy --cache-dir ../.cache/mypy) || failed=1
echo "with the packages of test/python/requirements-python-newest.txt"
tried python-newest || failed=1
echo "with the packages of test/python/requirements-python-oldest.txt"
wait "$oldest" || failed=1
cat .cache/python-oldest.log
node -r ./scripts/fixed-node.cjs scripts/counts.ts .cache/tests-python-{oldest,newest}.json || failed=1
# The page of another notebook program takes a minute to install.
if [ "$failed" = 1 ] || [ -n "${CI:-}" ]; then exit "$failed"; fi

if python=$(timeout 600 scripts/peers.sh marimo); then
  PITLAKE_DATA=$PWD/.cache/notebook-lake PYTHONPATH=$PWD/notebooks "$python" test/python/marimo_run.py notebooks/01-quick-look.ipynb .cache/marimo
else
  echo "marimo cannot be had here"
fi
