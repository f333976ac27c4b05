"""A lake in Dagster: jobs are assets, verify, audit and status are checks. `dagster dev -f dagster_lake.py` shows it.

PITLAKE_PUBLISH names where tables are published; without it there is no such asset. See pitlake_job.py for the rest.
"""

import os
from datetime import timedelta

import dagster as dg
from pitlake_job import Ended, run

DAILY = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=36), warn_window=timedelta(hours=26))
ATTEMPTS = 3


def asset(name: str, *argv: str, deps: tuple[str, ...] = ()) -> dg.AssetsDefinition:
    """A job: what it found is checks of its own, what comes later is tried again, what a person must mend fails."""

    @dg.asset(
        name=name,
        deps=list(deps),
        group_name="lake",
        description=f"pitlake {' '.join(argv)}",
        freshness_policy=DAILY,
        check_specs=[dg.AssetCheckSpec("integrity", asset=name), dg.AssetCheckSpec("complete", asset=name)],
    )
    def job(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        ended = run(*argv)
        if ended.words:
            context.log.info(ended.words)
        if not ended.done:
            stop(ended)
        return dg.MaterializeResult(
            metadata=ended.facts(),
            check_results=[
                # Exit code 4: what the provider says differs from what is held, which stays as it is.
                dg.AssetCheckResult(check_name="integrity", passed=ended.code != 4, description=ended.words),
                # Exit code 6: some windows failed; the next run asks them again.
                dg.AssetCheckResult(
                    check_name="complete",
                    passed=ended.code != 6,
                    severity=dg.AssetCheckSeverity.WARN,
                    description=ended.words,
                ),
            ],
        )

    return job


def check(name: str, on: str, *argv: str, warns: tuple[int, ...] = ()) -> dg.AssetChecksDefinition:
    """A command that judges: 0 passes, 4 is an error, the codes of `warns` a warning, any other is a failure to judge."""

    @dg.asset_check(name=name, asset=on, description=f"pitlake {' '.join(argv)}")
    def judge(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        ended = run(*argv)
        if ended.code not in (0, 4, *warns):
            stop(ended)
        severity = dg.AssetCheckSeverity.WARN if ended.code in warns else dg.AssetCheckSeverity.ERROR
        return dg.AssetCheckResult(
            passed=ended.code == 0, severity=severity, metadata=ended.facts(), description=ended.words
        )

    return judge


def stop(ended: Ended) -> None:
    if ended.later:
        raise dg.RetryRequested(max_retries=ATTEMPTS, seconds_to_wait=ended.wait)
    raise dg.Failure(f"exit code {ended.code}: {ended.words}", allow_retries=False)


destination = os.environ.get("PITLAKE_PUBLISH")
published = [asset("published", "publish", destination, deps=("views",))] if destination else []

jobs = [
    asset("metrics", "fetch"),
    asset("registry", "registry", "sync"),
    asset("views", "views", deps=("metrics", "registry")),
    *published,
]

checks = [
    # Files by their digests, and a sample of history asked again; 5, 6 and 7: not all of it could be compared.
    check("verify", "views", "verify", warns=(5, 6, 7)),
    # Rules of availability against arrivals: a contradicted rule is an error of the catalogue, not of the data.
    check("availability", "views", "audit", "availability", warns=(4,)),
    # Violations that nobody accepted are an error; 6: something is stale or to look at.
    check("status", "views", "status", "--check", warns=(6,)),
]

every_day = dg.ScheduleDefinition(
    name="every_day", target=dg.AssetSelection.groups("lake"), cron_schedule="15 6 * * *", execution_timezone="UTC"
)

defs = dg.Definitions(assets=jobs, asset_checks=checks, schedules=[every_day])
