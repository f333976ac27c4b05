#!/usr/bin/env bash
# Makes the README's pictures: what look-ahead is worth in notebook 03, whose figures it must tell, and the status page that
# `make lake` wrote, where there is a Chromium to draw it.
set -euo pipefail
cd "$(dirname "$0")/.."

python3 - .cache/notebooks/03-price-of-lookahead.html <<'PYTHON'
import base64, re, sys
from pathlib import Path

page, readme = Path(sys.argv[1]).read_text(encoding="utf8"), Path("README.md").read_text(encoding="utf8")
Path("docs/lookahead.png").write_bytes(base64.b64decode(re.search(r"data:image/png;base64,([^\"]+)", page)[1]))
for name in ("joined on t", "point-in-time"):
    figure = re.search(rf"<th>{name}</th>\s*<td>([-\d.]+)</td>", page)[1]
    if f"**{figure}**" not in readme:
        sys.exit(f"README.md does not tell {figure}, the Sharpe ratio {name}")
print("docs/lookahead.png, and the README tells its figures")
PYTHON

if ! command -v chromium >/dev/null || [ ! -f data/status.html ]; then
  echo "docs/status.png stays: it needs chromium, and the page that make lake writes"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir="$work" --hide-scrollbars --window-size=1180,1000 \
  --screenshot=docs/status.png "file://$PWD/data/status.html" 2>/dev/null
echo "docs/status.png"
