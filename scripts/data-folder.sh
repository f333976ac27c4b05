#!/usr/bin/env bash
# Prints the folder of the lake of this checkout: PITLAKE_DATA, else `data:` of pitlake.yaml, else data.
set -euo pipefail
cd "$(dirname "$0")/.."

file=
[ ! -f pitlake.yaml ] || file=$(sed -n 's/^data: *"\{0,1\}\([^"#]*[^"# ]\).*/\1/p' pitlake.yaml)
printf '%s\n' "${PITLAKE_DATA:-${file:-data}}"
