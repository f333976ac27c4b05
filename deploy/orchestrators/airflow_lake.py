"""A lake in Airflow 3: put this file and pitlake_job.py into the folder of DAGs.

PITLAKE_PUBLISH names where tables are published; without it there is no such task. See pitlake_job.py for the rest.
"""

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from pitlake_job import run

# Each job runs whatever the others said, as in `pitlake daily`.
ANYWAY = {"trigger_rule": "all_done"}


def outcome(*argv: str, warns: tuple[int, ...] = ()) -> dict:
    """The report of a command; 4 and what a person must mend fail at once, what comes later is tried again."""
    ended = run(*argv)
    print(ended.words)
    if ended.code == 0 or ended.code in warns or (ended.code == 6 and ended.done):
        return ended.facts()
    said = f"exit code {ended.code}: {ended.words}"
    raise AirflowException(said) if ended.later else AirflowFailException(said)


@dag(
    dag_id="pitlake",
    schedule="15 6 * * *",
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
)
def lake():
    @task
    def fetch():
        return outcome("fetch")

    @task
    def registry_sync():
        return outcome("registry", "sync")

    @task(**ANYWAY)
    def views():
        return outcome("views")

    @task(**ANYWAY)
    def publish():
        return outcome("publish", os.environ["PITLAKE_PUBLISH"])

    @task(**ANYWAY)
    def verify():
        # Not all could be compared (5, 6, 7): the next run goes on with it.
        return outcome("verify", warns=(5, 6, 7))

    @task(**ANYWAY)
    def availability():
        return outcome("audit", "availability", warns=(4,))

    @task(**ANYWAY)
    def status():
        # Something is stale or to look at (6): the page says what.
        return outcome("status", "--check", warns=(6,))

    @task(trigger_rule="one_failed", retries=0)
    def told():
        # The state of a run is that of its last tasks: this one fails it for any other.
        raise AirflowFailException("a task of this run failed")

    made = views()
    jobs = [fetch(), registry_sync()]
    after = [verify(), availability(), status(), *([publish()] if os.environ.get("PITLAKE_PUBLISH") else [])]
    jobs >> made
    made >> after
    [*jobs, made, *after] >> told()


pitlake = lake()
