#!/usr/bin/env bash
# The package in python/: `scripts/python.sh wheel` builds it into python/dist; `scripts/python.sh test` builds it, installs
# it beside the oldest and the newest pandas, polars and duckdb that it supports, and runs its tests there.
set -euo pipefail
cd "$(dirname "$0")/.."

newest=$(scripts/peers.sh python-newest)
rm -rf python/dist python/build python/*.egg-info
(cd python && "$newest" -m build --wheel --no-isolation --outdir dist . >/dev/null)
rm -rf python/build python/*.egg-info
ls python/dist/*.whl
[ "${1:-wheel}" = test ] || exit 0

scripts/notebook-lake.sh
(cd python && "$newest" -m mypy --cache-dir ../.cache/mypy)
for name in python-oldest python-newest; do
  echo "with the packages of test/python/requirements-$name.txt"
  python=$(scripts/peers.sh "$name")
  # A venv of its own knows this wheel and those packages, and no folder of the project.
  clean=.cache/$name-clean
  rm -rf "$clean"
  "$python" -m venv "$clean"
  echo "$PWD/.cache/$name-venv/lib/$(ls ".cache/$name-venv/lib")/site-packages" >"$clean/lib/$(ls "$clean/lib")/site-packages/beside.pth"
  "$clean/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-index python/dist/*.whl
  PITLAKE_INSTALLED=1 "$clean/bin/python" -m pytest -q -p no:cacheprovider test/python/pitlake
done
