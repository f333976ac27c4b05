-- How much of each metric is there, and until when: one row a metric and interval.
select metric, "interval", count(*) as points, max(t) as newest_t, max(available_at) as knowable_since
from {{ source('lake', 'points') }}
group by all
