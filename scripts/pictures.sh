#!/usr/bin/env bash
# Makes the README's pictures: what look-ahead is worth in notebook 03, whose figures the README must contain, and the status
# page that `make lake` wrote and the page of its lake, if there is a Chromium to draw them.
# `scripts/pictures.sh page` makes only the last one, of the lake in PITLAKE_DATA.
set -euo pipefail
cd "$(dirname "$0")/.."

data=${PITLAKE_DATA:-data}
work=$(mktemp -d)
server=
# Ends the server, if there is one, before its folder is removed.
finish() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  rm -rf "$work"
}
trap finish EXIT

# draw FILE HEIGHT ADDRESS: a picture of a page.
draw() {
  chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$work/profile" --hide-scrollbars --window-size="1180,$2" \
    --virtual-time-budget=10000 --screenshot="$1" "$3" 2>/dev/null
  echo "$1"
}

# The page of serve, as it was known at an instant two years before the lake's end.
draw_page() {
  node scripts/launch.cjs serve --data "$data" --listen 127.0.0.1:0 2>"$work/listening" &
  server=$!
  for _ in $(seq 100); do grep -q listening "$work/listening" && break; sleep 0.1; done
  url=$(sed -n 's/^listening at //p' "$work/listening")
  draw docs/images/page.png 820 "$url/#metric=price_usd&assets=BTC&as_of=2024-11-01T12:00:00Z"
}

if [ "${1:-}" = page ]; then
  draw_page
  exit 0
fi

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

if ! command -v chromium >/dev/null || [ ! -f "$data/status.html" ]; then
  echo "docs/images/status.png and docs/images/page.png stay: they need chromium, and the lake that make lake makes"
  exit 0
fi
draw docs/images/status.png 1000 "file://$(realpath "$data/status.html")"
draw_page
