"""Materialises the recipe for Dagster in this process and tells as JSON what came of it; retries wait for nobody."""

import json
import sys

import dagster as dg
import pitlake_job

pitlake_job.Ended.wait = property(lambda ended: 0)
import dagster_lake  # noqa: E402

result = dg.materialize([*dagster_lake.jobs, *dagster_lake.checks], raise_on_error=False)
dg.Definitions.validate_loadable(dagster_lake.defs)
assets = {}
for event in result.get_asset_materialization_events():
    metadata = event.materialization.metadata
    assets[event.asset_key.to_user_string()] = {name: value.value for name, value in metadata.items()}
checks = {
    f"{one.asset_key.to_user_string()} {one.check_name}": [one.passed, one.severity.value]
    for one in result.get_asset_check_evaluations()
}
failures = {
    event.step_key: event.step_failure_data.user_failure_data.description
    if event.step_failure_data.user_failure_data
    else event.step_failure_data.error.message
    for event in result.all_events
    if event.is_step_failure
}
retries = [event.step_key for event in result.all_events if event.is_step_up_for_retry]
told = {"success": result.success, "assets": assets, "checks": checks, "failures": failures, "retries": retries}
json.dump(told, sys.stdout)
