#!/usr/bin/env bash
# Makes the README's pictures: what look-ahead is worth in notebook 03, whose figures it must tell, and the status page that
# `make lake` wrote and the page of its lake, where there is a Chromium to draw them.
set -euo pipefail
cd "$(dirname "$0")/.."

python3 - .cache/notebooks/03-price-of-lookahead.html <<'PYTHON'
import base64, re, sys
from pathlib import Path

page, readme = Path(sys.argv[1]).read_text(encoding="utf8"), Path("README.md").read_text(encoding="utf8")
Path("docs/images/lookahead.png").write_bytes(base64.b64decode(re.search(r"data:image/png;base64,([^\"]+)", page)[1]))
for name in ("joined on t", "point-in-time"):
    figure = re.search(rf"<th>{name}</th>\s*<td>([-\d.]+)</td>", page)[1]
    if f"**{figure}**" not in readme:
        sys.exit(f"README.md does not tell {figure}, the Sharpe ratio {name}")
print("docs/images/lookahead.png, and the README tells its figures")
PYTHON

if ! command -v chromium >/dev/null || [ ! -f data/status.html ]; then
  echo "docs/images/status.png and docs/images/page.png stay: they need chromium, and the lake that make lake makes"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir="$work" --hide-scrollbars --window-size=1180,1000 \
  --screenshot=docs/images/status.png "file://$PWD/data/status.html" 2>/dev/null
echo "docs/images/status.png"

# The page of serve, as it was known at an instant two years before the lake's end.
node scripts/launch.cjs serve --data data --listen 127.0.0.1:0 2>"$work/listening" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do grep -q listening "$work/listening" && break; sleep 0.1; done
url=$(sed -n 's/^listening at //p' "$work/listening")
view='metric=price_usd&assets=BTC&as_of=2024-11-01T12:00:00Z'
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir="$work" --hide-scrollbars --window-size=1180,820 \
  --virtual-time-budget=10000 --screenshot=docs/images/page.png "$url/#$view" 2>/dev/null
echo "docs/images/page.png"
