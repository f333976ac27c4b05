"""Calls dbt once for each list of words of a JSON text, in one process; each ends with 0, or 1 where it failed, and a NUL."""

import json
import sys

from dbt.cli.main import dbtRunner

for words in json.loads(sys.argv[1]):
    done = dbtRunner().invoke(["--no-use-colors", *words])
    print(f"{done.exception or ''}{int(not done.success)}", end="\0", flush=True)
