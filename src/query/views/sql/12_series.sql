-- series: one row for each series that has known points.
-- columns: metric, asset, interval, currency, exchange, network, first_t, last_t, points, gaps, last_available_at.
-- law: L1. The counts come from the points and not from the ledger, so that they obey as_of.
CREATE OR REPLACE VIEW series AS
SELECT metric, asset, "interval", currency, exchange, network,
  min(t) AS first_t, max(t) AS last_t, count(*) AS points,
  {{count min(t) max(t) "interval"}} + 1 - count(*) AS gaps,
  max(available_at) AS last_available_at
FROM ({{points}}) AS points
GROUP BY metric, asset, "interval", currency, exchange, network;
COMMENT ON VIEW series IS 'One row per series: what is known of it at as_of.';
{{series_comments series}}
COMMENT ON COLUMN series.first_t IS 'start of the first interval with a point';
COMMENT ON COLUMN series.last_t IS 'start of the last interval with a point';
COMMENT ON COLUMN series.points IS 'how many points are known';
COMMENT ON COLUMN series.gaps IS 'how many intervals between the first and the last t have no known point. This includes pending points and points that were not requested, so it can differ from the view gaps';
COMMENT ON COLUMN series.last_available_at IS 'when the latest of the points became known';
