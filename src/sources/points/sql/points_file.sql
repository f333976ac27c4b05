-- points_file: writes the Parquet file of a batch, one row per point, sorted by series and t.
-- from: sorted_points, or its SELECT.
-- columns: metric and interval in recent files, then asset, currency, exchange, network, t, available_at, observed_at, v, o, basis, extra, computed_at (NULL where it
--   is the available_at of a point with basis provider), available_rule_at (the rule's instant for points that were
--   backfilled or lost and observed again, NULL for all others), params.
-- law: L7. A dictionary takes -0.0 and 0.0 for one value: none is written where both may meet.
COPY (
  SELECT {{lead}} {{asset}} AS asset, {{currency}} AS currency, {{exchange}} AS exchange, {{network}} AS network,
    make_timestamptz(t * 1000000) AS t, make_timestamptz(available) AS available_at,
    make_timestamptz(seen) AS observed_at, v, o, dated_by AS basis, extra,
    make_timestamptz(told_at) AS computed_at, make_timestamptz(stands_in) AS available_rule_at, {{params}} AS params
  FROM {{source}} WHERE {{chosen}}
) TO {{out}} (FORMAT parquet, PARQUET_VERSION v2, {{compression}}, DICTIONARY_SIZE_LIMIT {{dictionary}},
  ROW_GROUP_SIZE {{group}}{{metadata}})
