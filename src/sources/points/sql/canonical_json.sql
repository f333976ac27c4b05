-- canonical_json: a macro: a text that two JSON texts share if they are equal as JSON. The order of keys and the spelling of numbers do not count.
--   Of an integer that no double holds the digits count.
-- from: a JSON text.
-- columns: none, a scalar.
-- law: L2. An object whose keys come in another order is no changed value.
CREATE OR REPLACE TEMP MACRO canonical_json(j) AS (
  SELECT string_agg(line, chr(10) ORDER BY line)
  FROM (
    SELECT path || chr(1) || coalesce(key, '') || chr(1) || CASE
        WHEN type IN ('DOUBLE', 'UBIGINT', 'BIGINT', 'HUGEINT') THEN 'n' || CASE WHEN length(CAST(atom AS VARCHAR)) > 15 AND regexp_full_match(CAST(atom AS VARCHAR), '-?[0-9]+')
              AND ltrim(CAST(atom AS VARCHAR), '-') <> format('{:.0f}', abs(CAST(CAST(atom AS VARCHAR) AS DOUBLE)))
            THEN CAST(atom AS VARCHAR) ELSE CAST(CAST(CAST(atom AS VARCHAR) AS DOUBLE) AS VARCHAR) END
        ELSE type || coalesce(CAST(atom AS VARCHAR), '')
      END AS line
    FROM json_tree(j)
  )
)
