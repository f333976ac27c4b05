#!/usr/bin/env bash
# Runs whole what .ci/run leaves out or tries a share of, one after the other; `scripts/nightly.sh NAME…` only those targets.
# As each ends, its row in docs/nightly.md says at which commit that was, when, how long it took and what it said last: they
# may run on different nights. What each said stands in .cache/nightly/NAME.log.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(test-watch test-years test-s3-race test-spark test-recipes test-python test-engines bench bench-python steps torture fuzz powercuts cuts mutants mutants-sql)
[ $# -gt 0 ] || set -- "${all[@]}"
for name; do
  [[ " ${all[*]} " == *" $name "* ]] || { echo "no target $name here; there are ${all[*]}" >&2 && exit 2; }
done
logs=.cache/nightly page=docs/nightly.md heading='## The last run of each'
mkdir -p "$logs"

# Writes one row, and leaves the others as they are.
note() {
  local one row
  local -A rows=()
  while IFS= read -r row; do
    [[ $row =~ ^\|\ \`make\ ([^\`]+)\`\ \| ]] && rows[${BASH_REMATCH[1]}]=$row
  done < <(sed "1,/^$heading/d" "$page")
  rows[$1]=$2
  {
    sed "/^$heading/q" "$page"
    printf '\n| target | ended | commit | began | seconds | cores | said last |\n| --- | --- | --- | --- | ---: | ---: | --- |\n'
    for one in "${all[@]/mutants-sql/mutants ROOM=sql}"; do
      echo "${rows[$one]:-"| \`make $one\` | not run yet | | | | | |"}"
    done
  } >"$logs/page.md"
  mv "$logs/page.md" "$page"
}

failed=()
for name; do
  what=${name/mutants-sql/mutants ROOM=sql}
  commit=$(git rev-parse --short HEAD) began=$(date -u '+%F %H:%M') start=$SECONDS how=good
  # What is not committed is no commit's.
  [ -z "$(git status --porcelain -- . ":!$page")" ] || commit+=', changed'
  echo "=== make $what"
  # Its name and what is told to it: two words.
  make --no-print-directory $what >"$logs/$name.log" 2>&1 || { how=failed && failed+=("$name"); }
  said=$(sed 's/\x1b\[[0-9;]*m//g' "$logs/$name.log" | grep -v '^[[:space:]]*$' | tr '|' '/' | sed 's/^ *//' || true)
  last=$(grep -E 'passed|noticed|within|ABOVE' <<<"$said" | tail -1 || tail -1 <<<"$said")
  if [ "$how" = good ] && lacks=$(grep -E 'cannot be had here|is not asked' <<<"$said"); then
    how='in part' last=$(tr '\n' ';' <<<"$lacks")
  fi
  row="| \`make $what\` | $how | $commit | $began | $((SECONDS - start)) | $(nproc) | ${last:0:100} |"
  echo "$row"
  note "$what" "$row"
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}, see $logs" >&2 && exit 1; }
