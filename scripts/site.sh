#!/usr/bin/env bash
# Builds docs/ as a static site with search into .cache/site; it loads nothing from elsewhere. Its builder is installed the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.cache/site-tools
wanted=$(cat scripts/site/package.json scripts/site/package-lock.json | sha256sum | cut -c1-64)
if [ ! -f "$tools.made" ] || [ "$(cat "$tools.made")" != "$wanted" ]; then
  echo "Installing the packages of scripts/site into .cache/site-tools" >&2
  rm -rf "$tools" "$tools.made"
  mkdir -p "$tools"
  cp scripts/site/package.json scripts/site/package-lock.json .npmrc "$tools"
  (cd "$tools" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
  echo "$wanted" >"$tools.made"
fi
node "$tools/node_modules/vitepress/bin/vitepress.js" build docs
echo "Built .cache/site. Read it with: python3 -m http.server -d .cache/site"
