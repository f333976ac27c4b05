-- The Parquet file of this batch: one row a point, sorted by series and t.
-- columns: metric and interval in recent files, then asset, currency, exchange, network, t, available_at, observed_at, v, o, basis, extra, computed_at (NULL where it
--   is the available_at of a point with basis provider), available_rule_at (the rule's instant for backfilled points, NULL
--   for all others), params.
-- law: L7. A dictionary takes -0.0 and 0.0 for one value: none is written where both may meet.
-- law: L1. available_at is computed_at, never before the floor; else the instant of a late arrival; else the rule's.
COPY (
  SELECT {{lead}} {{asset}} AS asset, {{currency}} AS currency, {{exchange}} AS exchange, {{network}} AS network,
    make_timestamptz(t * 1000000) AS t, make_timestamptz(available) AS available_at,
    make_timestamptz({{observed}}) AS observed_at, v, o, basis, extra,
    make_timestamptz(CASE WHEN NOT own OR computed < available THEN computed END) AS computed_at,
    make_timestamptz(CASE WHEN own AND available - rule > {{backfill}} * 1000000 THEN rule END) AS available_rule_at,
    {{params}} AS params
  FROM (
    SELECT *,
      CASE WHEN own THEN greatest(computed, {{floor}} * 1000000) WHEN {{late}} THEN greatest({{observed}}, rule) ELSE rule END AS available,
      CASE WHEN own THEN {{provider}} WHEN {{late}} THEN {{observed_basis}} ELSE {{basis}} END AS basis
    FROM (
      SELECT *, {{place}} AS place, computed IS NOT NULL AND NOT {{trusted}} AS own, {{available}} * 1000000 AS rule
      FROM {{source}}
    )
  )
  {{order}}
) TO {{out}} (FORMAT parquet, PARQUET_VERSION v2, {{compression}}, DICTIONARY_SIZE_LIMIT {{dictionary}},
  ROW_GROUP_SIZE {{group}}{{metadata}})
