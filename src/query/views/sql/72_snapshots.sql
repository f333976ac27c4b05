-- snapshots.<resource>: the registry as its dated snapshots showed it. If a day has several snapshots, the last one
--   counts.
-- columns: snapshot_date, id, the fields of the resource, record, as_of, as_of_at, observed_at.
-- law: L1. A snapshot is known from the time at which this lake stored it. Rows of a date's delta replace the rows of
--   its base for the same entity.
--   A condition on snapshot_date reaches the files: files of other dates are not read.
CREATE OR REPLACE VIEW snapshots."{{resource}}" AS
WITH chosen AS NOT MATERIALIZED (
  SELECT snapshot_date, base, delta, as_of, as_of_at, observed_at FROM {{files snapshots}}
  WHERE resource = '{{resource}}' AND ({{unset as_of}} OR observed_at <= {{as_of}})
    AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
  QUALIFY row_number() OVER (PARTITION BY snapshot_date ORDER BY observed_at DESC) = 1
),
layered AS NOT MATERIALIZED (
  SELECT chosen.as_of AS shown_as_of, chosen.as_of_at AS shown_as_of_at, chosen.observed_at AS shown_at,
    dated.layer = chosen.base AS is_base, dated.*
  FROM chosen JOIN {{files {{resource}}}} AS dated
    ON dated.snapshot_date = chosen.snapshot_date AND (dated.layer = chosen.base OR dated.layer = chosen.delta)
)
SELECT snapshot_date, id, {{fields {{resource}}}} record, shown_as_of AS as_of, shown_as_of_at AS as_of_at,
  shown_at AS observed_at
FROM (FROM layered QUALIFY NOT is_base OR bool_and(is_base) OVER (PARTITION BY snapshot_date, entity))
WHERE NOT removed;
COMMENT ON VIEW snapshots."{{resource}}" IS 'The {{resource}} in the last snapshot of each day.';
COMMENT ON COLUMN snapshots."{{resource}}".snapshot_date IS 'the UTC day on which it was taken';
COMMENT ON COLUMN snapshots."{{resource}}".id IS 'id of the record, as assigned by the registry';
COMMENT ON COLUMN snapshots."{{resource}}".record IS 'the whole record as received, JSON';
COMMENT ON COLUMN snapshots."{{resource}}".as_of IS 'the field as_of of the snapshot, as text; not the session variable';
COMMENT ON COLUMN snapshots."{{resource}}".as_of_at IS 'the same as a timestamp';
COMMENT ON COLUMN snapshots."{{resource}}".observed_at IS 'when this lake first stored the snapshot';
{{field_comments snapshots."{{resource}}"}}
