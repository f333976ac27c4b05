-- Whether the lake holds any point inside the asked windows of these bodies.
-- columns: meets.
-- law: L2. Where it holds none there is nothing to compare.
SELECT EXISTS (
  FROM {{source}} e
  JOIN ({{asked}}) s
    ON e.asset = s.asset AND e.currency IS NOT DISTINCT FROM s.currency
    AND e.exchange IS NOT DISTINCT FROM s.exchange AND e.network IS NOT DISTINCT FROM s.network
    AND e.params IS NOT DISTINCT FROM s.params
    AND (s.since IS NULL OR e.t >= make_timestamptz(s.since * 1000000))
    AND (s.until IS NULL OR e.t < make_timestamptz(s.until * 1000000))
) AS meets
