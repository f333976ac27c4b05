-- _pit_all_points: the points of one metric, numbered by t. _pit_decisions: the decisions of pit_window.
{{known kept}} (
  SELECT p.asset, p.t, p.available_at, p.v, p.o{{seen}}, {{number}} OVER (PARTITION BY p.asset ORDER BY p.t) AS number
  FROM {{series}} AS p WHERE {{counted p {{revised metric}}}}
),{{vintages asset {{revised metric}}}}
_pit_decisions AS MATERIALIZED (
  SELECT u.* EXCLUDE (_pit_utc), {{before u._pit_utc}} AS _pit_known_by, row_number() OVER () AS _pit_id
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_utc FROM query_table(decisions) AS yours) AS u
)
