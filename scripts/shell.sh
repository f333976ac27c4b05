#!/usr/bin/env bash
# A shell in which `pitlake` is a command and a package of Python; with the Python of `make notebooks` where that was made.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PWD/node_modules/.bin:$PATH
[ ! -x .cache/notebooks-venv/bin/python ] || export PATH=$PWD/.cache/notebooks-venv/bin:$PATH
export PYTHONPATH=$PWD/python:$PWD/notebooks${PYTHONPATH:+:$PYTHONPATH}
if [ -t 0 ]; then
  echo "pitlake is on the path, $(node -r ./scripts/fixed-node.cjs scripts/data-folder.ts) is the lake; exit leaves this shell"
  exec "${SHELL:-bash}"
fi
exec bash
