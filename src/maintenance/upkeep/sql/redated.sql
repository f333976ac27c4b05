-- dated: the rows of some points files, with the dates that changed availability rules give them.
-- columns: those of points files, then new_at, new_basis, new_rule_at and new_computed (NULL where files leave it
--   out).
-- law: L1, L6. A late arrival keeps the instant at which this lake saw it. An instant that the provider reported
--   stays, unless a rule is trusted more or gives a later instant.
CREATE OR REPLACE TEMP VIEW dated AS
SELECT * EXCLUDE (mark, is_reported, rule_us, known_us, provider_at), make_timestamptz(known_us) AS new_at,
  CASE WHEN basis = 'observed' THEN basis WHEN is_reported THEN 'provider' ELSE {{basis}} END AS new_basis,
  CASE WHEN basis = 'observed' THEN available_rule_at
    WHEN is_reported AND known_us - rule_us > {{backfill}}{{first}}
      THEN make_timestamptz(rule_us)
    END AS new_rule_at,
  CASE WHEN NOT is_reported OR epoch_us(provider_at) < known_us THEN provider_at END AS new_computed
FROM (
  SELECT *, CASE WHEN basis = 'observed' THEN epoch_us(available_at)
      WHEN is_reported THEN greatest(epoch_us(provider_at), {{floor}} * 1000000) ELSE rule_us END AS known_us
  FROM (
    SELECT *, provider_at IS NOT NULL AND basis <> 'observed' AND NOT {{trusted}} AS is_reported,
      {{available}} * 1000000 AS rule_us
    FROM (SELECT *, epoch_us(t) // 1000000 AS mark, {{computed_at}} AS provider_at FROM {{source}})
  )
)
