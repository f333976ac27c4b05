-- The points of one metric, numbered by t (_pit_p), and the decisions (_pit_x).
{{known kept}} (
  SELECT p.asset, p.t, p.available_at, p.v, p.o{{seen}}, {{number}} OVER (PARTITION BY p.asset ORDER BY p.t) AS number
  FROM {{series}} AS p WHERE {{counted p {{revised metric}}}}
),{{vintages asset {{revised metric}}}}
_pit_x AS MATERIALIZED (
  SELECT u.* EXCLUDE (_pit_u), {{before u._pit_u}} AS _pit_k, row_number() OVER () AS _pit_i
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_u FROM query_table(decisions) AS yours) AS u
)
