-- violations: upstream values that contradict stored ones.
-- law: L2, L6. Obeys only observed_as_of, and ledger_as_of at the doors. One row per series, t, kind and offered value, and
--   the like of each incident.
CREATE OR REPLACE VIEW violations AS
SELECT * REPLACE (CASE WHEN acknowledged_at IS NOT NULL THEN 'acknowledged' WHEN reverted_at IS NOT NULL THEN 'reverted' ELSE 'open' END AS status)
FROM (
  SELECT metric, asset, "interval", currency, exchange, network, t, kind, stored, offered, stored_at, offered_at, request,
    CASE WHEN {{by_then acknowledged_at}} THEN acknowledged_at END AS acknowledged_at,
    CASE WHEN {{by_then acknowledged_at}} THEN why END AS why, reverted_at,
    '' AS status, incident, until, points
  FROM {{ledger violations}}
  WHERE {{stands}}
);
COMMENT ON VIEW violations IS 'Upstream values that differ from stored ones. The stored values stay.';
{{series_comments violations}}
COMMENT ON COLUMN violations.t IS 'start of the interval; for a window, of its first point';
COMMENT ON COLUMN violations.kind IS 'what differs';
COMMENT ON COLUMN violations.stored IS 'the stored value, JSON; NULL for a window';
COMMENT ON COLUMN violations.offered IS 'the value that came instead, JSON; NULL if the point was gone';
COMMENT ON COLUMN violations.stored_at IS 'when the stored value was observed; NULL for a window';
COMMENT ON COLUMN violations.offered_at IS 'when the offered value was observed';
COMMENT ON COLUMN violations.request IS 'id of the request that returned it; see requests';
COMMENT ON COLUMN violations.acknowledged_at IS 'when a person acknowledged it (violations acknowledge); NULL if not acknowledged';
COMMENT ON COLUMN violations.why IS 'the reason that the person gave';
COMMENT ON COLUMN violations.reverted_at IS 'since when answers no longer show it; NULL while the last one does';
COMMENT ON COLUMN violations.status IS 'open, acknowledged or reverted';
COMMENT ON COLUMN violations.incident IS 'the incident to which the violation belongs; NULL if it belongs to none';
COMMENT ON COLUMN violations.until IS 'end of a window in which all stored points were missing, exclusive; NULL for a single point';
COMMENT ON COLUMN violations.points IS 'number of points that it concerns';
