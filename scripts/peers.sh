#!/usr/bin/env bash
# Prints the interpreter of a Python with the packages of test/python/requirements.txt; made when it is not there yet.
# With a name those of requirements-NAME.txt: `readers` for the engines that read published tables, `spark` for Spark,
# `s3` for a bucket on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:-peers}
requirements=test/python/requirements-$name.txt
[ "$name" != peers ] || requirements=test/python/requirements.txt
venv=$PWD/.cache/$name-venv
wanted=$(sha256sum <"$requirements" | cut -c1-64)
if [ ! -x "$venv/bin/python" ] || [ ! -f "$venv.made" ] || [ "$(cat "$venv.made")" != "$wanted" ]; then
  echo "Installing the packages of $requirements into .cache/$name-venv" >&2
  rm -rf "$venv" "$venv.made"
  mkdir -p .cache
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --require-hashes -r "$requirements"
  echo "$wanted" >"$venv.made"
fi
echo "$venv/bin/python"
