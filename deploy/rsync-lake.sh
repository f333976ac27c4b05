#!/bin/sh
# Copies a lake with rsync, beside any job but vacuum: rsync-lake.sh data backup:/srv/lake
# Each run sends what is new. What a journal names must be in the copy, so the journal goes before the data, and notes of
# stamped results, which name a version, before the journal. What else lies in a lake is made from these.
set -eu
[ $# = 2 ] || { echo "rsync-lake.sh: expected SOURCE and DESTINATION" >&2; exit 2; }
from=${1%/} to=${2%/}

copy() {
  [ -e "$from/$1" ] || return 0
  rsync -a --delete --exclude='.tmp-*' "$from/$1" "$to/"
}

copy lake.json
copy stamps
copy journal
copy runs
copy heads
copy archive
copy registry
copy assets
copy points
