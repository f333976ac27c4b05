-- points: every stored point, as known at `as_of` and as stored at `observed_as_of`.
-- columns: metric, asset, interval, currency, exchange, network, t, available_at, observed_at, v, o, basis, extra, computed_at.
-- law: L1, L6. Both timestamps fold to constants and reach the Parquet scan. While they are unset, they leave no
--   filter.
--   The condition on backfilled rows is inside the branch, so that the outer CASE folds to one plain column.
--   With backfill = 'rule' the availability depends on two columns. The scan then skips by t, because no point is
--   known before its interval starts.
--   observed_at describes the lake's own work: it is NULL if the point was stored after ledger_as_of.
--   proof_hidden lists edges in microseconds. A look-ahead proof hides every row that arrived behind an odd number of
--   them.
--   The columns are qualified: macros inline this text, and there a bare `metric` or `currency` means the macro's
--   parameter.
CREATE OR REPLACE VIEW points AS
SELECT stored.metric, stored.asset, stored."interval", stored.currency, stored.exchange, stored.network, stored.t,
  CASE WHEN {{backfill}} THEN {{available_by_rule stored}} ELSE stored.available_at END AS available_at,
  {{stored_by_then stored.observed_at}} AS observed_at, stored.v, stored.o,
  CASE WHEN {{backfill}}
    THEN CASE WHEN stored.available_rule_at < stored.available_at THEN 'backfilled' ELSE stored.basis END
    ELSE stored.basis END AS basis,
  stored.extra, {{computed_at stored}} AS computed_at
FROM {{files points}} AS stored
WHERE ({{unset as_of}} OR CASE WHEN {{backfill}} THEN stored.t ELSE stored.available_at END <= {{as_of}})
  AND ({{unset as_of}} OR NOT {{backfill}} OR {{available_by_rule stored}} <= {{as_of}})
  AND ({{unset observed_as_of}} OR stored.observed_at <= {{observed_as_of}})
  AND {{shown_in_proof CASE WHEN {{backfill}} THEN {{available_by_rule stored}} ELSE stored.available_at END}};
COMMENT ON VIEW points IS 'Every stored point that was knowable at as_of; without as_of, every stored point. One row per series and t.';
{{series_comments points}}
COMMENT ON COLUMN points.t IS 'start of the interval that the point describes; not when it was known';
COMMENT ON COLUMN points.available_at IS 'earliest time at which a live user could have known the point';
COMMENT ON COLUMN points.observed_at IS 'when this lake first stored the point';
COMMENT ON COLUMN points.v IS 'scalar value; NULL if the value is null, an object or an array';
COMMENT ON COLUMN points.o IS 'object or array value whole, as JSON text; see the view components';
COMMENT ON COLUMN points.basis IS 'source of available_at: provider, stated, assumed, override, observed or backfilled';
COMMENT ON COLUMN points.extra IS 'fields of the point that pitlake does not know, as JSON text';
COMMENT ON COLUMN points.computed_at IS 'when the provider says that it computed the point; NULL if it does not say';
