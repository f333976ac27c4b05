#!/usr/bin/env bash
# Prints the interpreter of a Python with the official DuckDB packages, pandas and polars; made when it is not there yet.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$PWD/.cache/peers-venv
wanted=$(sha256sum <test/python/requirements.txt | cut -c1-64)
if [ ! -x "$venv/bin/python" ] || [ ! -f "$venv.made" ] || [ "$(cat "$venv.made")" != "$wanted" ]; then
  echo "Installing DuckDB, pandas and polars for Python into .cache/peers-venv" >&2
  rm -rf "$venv" "$venv.made"
  mkdir -p .cache
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --require-hashes -r test/python/requirements.txt
  echo "$wanted" >"$venv.made"
fi
echo "$venv/bin/python"
