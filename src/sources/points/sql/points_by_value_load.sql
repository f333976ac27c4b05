-- points_by_value_load: fills points_by_value with one row per raw value.
-- from: raw_values, body_shapes, bodies.
-- columns: as in points_by_value.
-- law: L7. A scalar goes to v, an object or array to o; keys beside them to extra; what fits nowhere is a fault.
--   Of an integer that a double does not hold the text goes to extra, as v.
INSERT INTO points_by_value
WITH read AS (
  SELECT *, TRY_CAST(t AS DOUBLE) AS sent, TRY_CAST(TRY_CAST(t AS DOUBLE) AS BIGINT) AS mark, TRY_CAST(c AS DOUBLE) AS told,
    CASE WHEN left(v, 1) NOT IN ('{', '[') THEN TRY_CAST(v AS DOUBLE) END AS number,
    coalesce(left(v, 1) IN ('{', '['), false) AS nested,
    list_filter(coalesce(others, []), lambda e: left(e.value, 1) = '"' AND CASE e.key
      WHEN 'asset' THEN lower(e.value ->> '$') <> lower(own_asset)
      WHEN 'metric' THEN NOT contains(lower(own_metric), lower(e.value ->> '$')) ELSE false END) AS strangers
  FROM (SELECT *, rowid AS place FROM raw_values) JOIN body_shapes USING (body)
    JOIN (SELECT body, "interval", own_asset, own_metric FROM bodies) USING (body)
), told AS (
  SELECT *, CASE
      WHEN doubled THEN 'a point with the same key twice'
      WHEN len(strangers) > 0 THEN 'a point of another ' || strangers[1].key || ': ' || left(strangers[1].value, 40)
      WHEN NOT has_t THEN 't is missing'
      WHEN t IS NULL THEN 't is null'
      WHEN left(t, 1) = '"' THEN 't is a text: ' || left(t, 40)
      WHEN t IN ('true', 'false') THEN 't is a boolean'
      WHEN sent IS NULL THEN 't is no number: ' || left(t, 40)
      WHEN NOT isfinite(sent) THEN 't is beyond a double: ' || left(t, 40)
      WHEN abs(sent) >= 1e11 THEN 't is in milliseconds or finer: ' || left(t, 40)
      WHEN sent <> floor(sent) THEN 't has a fraction: ' || t
      WHEN NOT {{on_grid}} THEN 't is off the ' || "interval" || ' grid: ' || t
      WHEN left(v, 1) = '"' THEN 'v is a text: ' || left(v, 40)
      WHEN v IN ('true', 'false') THEN 'v is a boolean'
      WHEN v IS NOT NULL AND NOT nested AND NOT coalesce(isfinite(number), false) THEN 'v is no finite number: ' || left(v, 40)
      WHEN left(o, 1) NOT IN ('{', '[') THEN 'o is neither an object nor an array: ' || left(o, 40)
      WHEN c IS NOT NULL AND NOT coalesce(told >= 0 AND told < 1e11 AND left(c, 1) <> '"', false)
        THEN 'computed_at is no Unix time in seconds: ' || left(c, 40)
      WHEN valued AND NOT has_v AND NOT has_o THEN 'a point with neither v nor o'
      WHEN NOT valued AND others IS NULL AND NOT has_v AND NOT has_o THEN 'a point without a value'
    END AS fault,
    CASE WHEN nested AND o IS NOT NULL THEN list_append(coalesce(others, []), {'key': 'o', 'value': o})
      WHEN abs(number) >= {{beyond_double}} AND regexp_full_match(v, '-?[0-9]+') 
          AND rtrim(ltrim(v, '-'), '0') <> rtrim(replace(regexp_replace(split_part(CAST(abs(number) AS VARCHAR), 'e', 1), '\.0$', ''), '.', ''), '0')
      THEN list_append(coalesce(others, []), {'key': 'v', 'value': v}) ELSE others END AS rest
  FROM read
), texts AS (
  SELECT *, CASE WHEN rest IS NOT NULL THEN '{' || array_to_string(list_transform(rest,
      lambda e: CAST(to_json(e.key) AS VARCHAR) || ':' || coalesce(e.value, 'null')), ',') || '}' END AS bundle
  FROM told
)
SELECT body, {{start}} AS t, number AS v,
  CASE WHEN nested THEN v WHEN valued THEN o WHEN lone IS NOT NULL THEN others[1].value ELSE bundle END AS o,
  CASE WHEN valued THEN bundle END AS extra,
  TRY_CAST(round(told * 1e6) AS BIGINT) AS computed, fault, place
FROM texts
