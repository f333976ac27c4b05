#!/usr/bin/env bash
# Prints the path of the pip that fills every venv of this project; made when it is not there yet.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p .cache
# Who comes while it is made waits for it.
if command -v flock >/dev/null; then
  exec 9>.cache/pip.lock
  flock 9
fi
[ -f .cache/pip-venv.made ] || { rm -rf .cache/pip-venv && python3 -m venv .cache/pip-venv && touch .cache/pip-venv.made; }
echo "$PWD/.cache/pip-venv/bin/pip"
