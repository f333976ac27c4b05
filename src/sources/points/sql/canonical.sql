-- canonical(j): a text that two JSON texts share if they are equal as JSON: order of keys and spelling of numbers aside.
-- columns: none, a scalar.
-- law: L2. An object whose keys come in another order is no changed value.
CREATE OR REPLACE TEMP MACRO canonical(j) AS (
  SELECT string_agg(line, chr(10) ORDER BY line)
  FROM (
    SELECT path || chr(1) || coalesce(key, '') || chr(1) || CASE
        WHEN type IN ('DOUBLE', 'UBIGINT', 'BIGINT', 'HUGEINT') THEN 'n' || CAST(CAST(CAST(atom AS VARCHAR) AS DOUBLE) AS VARCHAR)
        ELSE type || coalesce(CAST(atom AS VARCHAR), '')
      END AS line
    FROM json_tree(j)
  )
)
