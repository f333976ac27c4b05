-- question_reach: how far the decisions of a join reach. The decisions are a relation of asset, ts and latency.
-- columns: last (their newest ts), assets (JSON), late (whether a decision may be unresolved).
-- law: L1, L5. A decision may be unresolved if it lies behind the first gap in the resolved ranges, behind as_of, or
--   if its series has no range.
--   This check takes a fifth of the time of `question_unresolved`.
CREATE OR REPLACE MACRO question_reach(decisions, asked_metrics, asked_interval) AS TABLE
WITH {{part asked_decisions}},
_pit_assets AS (SELECT DISTINCT asset FROM _pit_decisions WHERE asset IS NOT NULL),
_pit_paths AS (
  SELECT DISTINCT CASE WHEN name = 'price_usd' THEN 'supply/current_pit' ELSE split_part(name, '#', 1) END AS path
  FROM (SELECT unnest(CAST(asked_metrics AS VARCHAR[])) AS name)
),
_pit_ends AS (
  SELECT metric, asset, until FROM ({{view coverage}}) AS resolved
  WHERE metric IN (FROM _pit_paths) AND "interval" = CAST(asked_interval AS VARCHAR) AND asset IN (FROM _pit_assets)
    AND state IN ('covered', 'empty', 'unsupported') AND reason IS DISTINCT FROM 'pending'
  QUALIFY lead(since) OVER (PARTITION BY metric, asset, currency, exchange, network ORDER BY since)
    IS DISTINCT FROM until
)
SELECT CAST(max(ts) AS VARCHAR) AS last,
  CAST(to_json((SELECT coalesce(list(asset ORDER BY asset), []) FROM _pit_assets)) AS VARCHAR) AS assets,
  coalesce(max(known) >= (SELECT min(until) FROM _pit_ends) OR max(known) > {{as_of}}, false)
    OR (SELECT count(DISTINCT (metric, asset)) FROM _pit_ends)
      < (SELECT count(*) FROM _pit_paths) * (SELECT count(*) FROM _pit_assets) AS late
FROM _pit_decisions;
COMMENT ON MACRO TABLE question_reach IS 'question_reach(decisions, asked_metrics, asked_interval): how far decisions (asset, ts, latency) reach, one row: last, assets, late. The interfaces of pitlake use it for their notes.';
