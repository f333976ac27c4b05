-- The first and the last part of a coarser point are those of the first and the last t, whatever came first to the lake.
SELECT agg, v FROM (
  SELECT 'first' AS agg, v FROM resample('indicators/sopr_adjusted_pit', '1h', '24h', 'first') WHERE asset = 'TURNED'
  UNION ALL SELECT 'last', v FROM resample('indicators/sopr_adjusted_pit', '1h', '24h', 'last') WHERE asset = 'TURNED'
) ORDER BY agg;
/*
agg | v
first | 0
last | 23
*/
