-- _pit_coarse: one row for each coarse interval of `metric` under the options of resample, made of its finer points
--   (its parts).
-- columns: asset, currency, exchange, network, start, available_at, parts, least_parts, and these counts and lists:
--   expected_parts: how many parts the interval has. existing_parts: how many have a number or null. numeric_parts:
--   how many have a number.
--   parts_v: the numbers in the order of t. has_value: whether there are enough of them for a value.
_pit_parts AS (
  SELECT known.asset, known.currency, known.exchange, known.network, known.t, known.available_at,
    {{start known.t to_interval}} AS start, {{leaf v known.pointer}} AS v,
    (known.v IS NULL AND known.o IS NULL) OR coalesce(json_type(known.o, known.pointer) = 'NULL', false) AS is_null
  FROM (SELECT stored.*, {{pointer metric}} AS pointer FROM {{points_of metric from_interval}} AS stored) AS known
  WHERE (CAST(currency AS VARCHAR) IS NULL OR known.currency IS NULL OR known.currency = CAST(currency AS VARCHAR))
    AND (CAST(exchange AS VARCHAR) IS NULL OR known.exchange IS NULL OR known.exchange = CAST(exchange AS VARCHAR))
    AND (CAST(network AS VARCHAR) IS NULL OR known.network IS NULL OR known.network = CAST(network AS VARCHAR))
    AND (since IS NULL OR known.t >= {{first {{utc since}} to_interval}})
    AND (until IS NULL OR known.t < {{first {{utc until}} to_interval}})
),
_pit_groups AS (
  SELECT p.asset, p.currency, p.exchange, p.network, p.start, max(p.available_at) AS available_at,
    count(*) FILTER (p.v IS NOT NULL OR p.is_null) AS existing_parts, count(p.v) AS numeric_parts,
    list(p.t) FILTER (p.v IS NOT NULL) AS parts_t, list(p.v) FILTER (p.v IS NOT NULL) AS parts_v
  FROM _pit_parts AS p
  GROUP BY p.asset, p.currency, p.exchange, p.network, p.start
),
_pit_counted AS (
  SELECT g.* REPLACE (
    CASE WHEN list_reduce(g.parts_t, lambda earlier, later: CASE WHEN earlier < later THEN later END) IS NOT NULL
      THEN g.parts_v
      ELSE list_transform(list_sort(list_zip(g.parts_t, g.parts_v)), lambda part: part[2]) END AS parts_v),
    CASE
      WHEN NOT {{fits from_interval to_interval}}
      THEN CAST(error('cannot resample ' || CAST(from_interval AS VARCHAR)
        || ' to ' || CAST(to_interval AS VARCHAR)) AS BIGINT)
      ELSE ({{end g.start to_interval}} - epoch_us(g.start)) // {{length from_interval}} END AS expected_parts,
    CASE WHEN coalesce(CAST(skip_nulls AS BOOLEAN), false) THEN g.numeric_parts ELSE g.existing_parts END AS parts,
    CASE WHEN CAST(min_parts AS BIGINT) < 1
      THEN CAST(error('min_parts is not positive') AS BIGINT)
      ELSE CAST(min_parts AS BIGINT) END AS least_parts
  FROM _pit_groups AS g
),
_pit_coarse AS (
  SELECT *, numeric_parts > 0 AND numeric_parts >= parts
    AND CASE WHEN least_parts IS NULL THEN existing_parts >= expected_parts ELSE numeric_parts >= least_parts END AS has_value
  FROM _pit_counted
)
