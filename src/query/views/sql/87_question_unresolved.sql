-- question_unresolved: how many decisions of a join are unresolved, for each of its metrics.
-- columns: metric, decisions, since (the ts of the first of them).
-- law: L1, L5. A decision is unresolved at the times that `unresolved` lists. The decisions are a relation of asset,
--   ts and latency.
CREATE OR REPLACE MACRO question_unresolved(decisions, metrics, "interval", currency := NULL,
  exchange := NULL, network := NULL, component := NULL) AS TABLE
WITH {{part asked_decisions}}
SELECT u.metric, CAST(count(DISTINCT o.n) AS INTEGER) AS decisions, CAST(min(o.ts) AS VARCHAR) AS since
FROM _pit_decisions AS o JOIN (
  {{part unresolved_times}}
) AS u ON u.asset = o.asset AND o.known >= u.since AND (u.until IS NULL OR o.known < u.until)
GROUP BY u.metric ORDER BY u.metric;
COMMENT ON MACRO TABLE question_unresolved IS 'question_unresolved(decisions, metrics, interval): for each metric, how many decisions (asset, ts, latency) are unresolved, and the first of them. Options as unresolved. The interfaces of pitlake use it for their notes.';
