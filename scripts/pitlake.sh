#!/usr/bin/env bash
# The command line of this checkout, from any folder: `make` links it as node_modules/.bin/pitlake.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
exec node -r "$root/scripts/fixed-node.cjs" "$root/src/main.ts" "$@"
