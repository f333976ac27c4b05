-- violations: upstream values that contradict stored ones.
-- law: L2, L6. Obeys only observed_as_of, and ledger_as_of at the doors. One row per series, t, kind and offered value.
CREATE OR REPLACE VIEW violations AS
SELECT metric, asset, "interval", currency, exchange, network, t, kind, stored, offered, stored_at, offered_at, request,
  CASE WHEN {{unset_ledger}} OR accepted_at <= {{ledger_as_of}} THEN accepted_at END AS accepted_at,
  CASE WHEN {{unset_ledger}} OR accepted_at <= {{ledger_as_of}} THEN why END AS why
FROM {{ledger violations}}
WHERE {{unset_ledger}} OR added_at <= {{ledger_as_of}};
COMMENT ON VIEW violations IS 'Upstream values that differ from the stored ones, which stay as they are.';
{{series_comments violations}}
COMMENT ON COLUMN violations.t IS 'start of the interval';
COMMENT ON COLUMN violations.kind IS 'what differs';
COMMENT ON COLUMN violations.stored IS 'the stored value, JSON';
COMMENT ON COLUMN violations.offered IS 'what came instead, JSON; NULL where it was gone';
COMMENT ON COLUMN violations.stored_at IS 'when the stored value was observed';
COMMENT ON COLUMN violations.offered_at IS 'when the other one was';
COMMENT ON COLUMN violations.request IS 'id of the request that brought it; see requests';
COMMENT ON COLUMN violations.accepted_at IS 'when a person took note of it; NULL where nobody had';
COMMENT ON COLUMN violations.why IS 'the reason that the person gave';
