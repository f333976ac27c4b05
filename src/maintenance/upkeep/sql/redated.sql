-- The rows of some points files beside the dates that other availability rules give them.
-- columns: those of points files, then new_at, new_basis, new_rule_at and new_computed, NULL where files leave them out.
-- law: L1, L6. Late arrivals keep the instant at which this lake saw them; the provider's own instants stay unless a
--   rule is to be trusted or states a later one.
CREATE OR REPLACE TEMP VIEW dated AS
SELECT * EXCLUDE (mark, own, rule, known, provider_at), make_timestamptz(known) AS new_at,
  CASE WHEN basis = 'observed' THEN basis WHEN own THEN 'provider' ELSE {{basis}} END AS new_basis,
  CASE WHEN basis = 'observed' THEN available_rule_at WHEN own AND known - rule > {{backfill}}{{first}} THEN make_timestamptz(rule)
    END AS new_rule_at,
  CASE WHEN NOT own OR epoch_us(provider_at) < known THEN provider_at END AS new_computed
FROM (
  SELECT *, CASE WHEN basis = 'observed' THEN epoch_us(available_at)
      WHEN own THEN greatest(epoch_us(provider_at), {{floor}} * 1000000) ELSE rule END AS known
  FROM (
    SELECT *, provider_at IS NOT NULL AND basis <> 'observed' AND NOT {{trusted}} AS own, {{available}} * 1000000 AS rule
    FROM (SELECT *, epoch_us(t) // 1000000 AS mark, {{computed}} AS provider_at FROM {{source}})
  )
)
