#!/usr/bin/env bash
# Prints the interpreter of a Python with the packages of test/python/requirements.txt; made when it is not there yet.
# With a name those of requirements-NAME.txt: `readers` for the engines that read published tables, `spark` for Spark,
# `s3` for a bucket on this machine; `calendars` for trading calendars; `notebooks` has Jupyter and its kin.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:-peers}
requirements=test/python/requirements-$name.txt
case $name in
  peers) requirements=test/python/requirements.txt ;;
  notebooks) requirements=notebooks/requirements.txt ;;
esac
venv=$PWD/.cache/$name-venv
wanted=$(sha256sum <"$requirements" | cut -c1-64)
if [ ! -x "$venv/bin/python" ] || [ ! -f "$venv.made" ] || [ "$(cat "$venv.made")" != "$wanted" ]; then
  echo "Installing the packages of $requirements into .cache/$name-venv" >&2
  rm -rf "$venv" "$venv.made"
  # One pip for all of them, and the list holds whatever its packages need: both would cost seconds of processor each time.
  pip=$(scripts/pip.sh)
  python3 -m venv --without-pip "$venv"
  "$pip" --python "$venv/bin/python" install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r "$requirements"
  echo "$wanted" >"$venv.made"
fi
echo "$venv/bin/python"
