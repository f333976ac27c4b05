-- What looks at values that come later.

-- the value of the day itself
{d} SELECT d.ts, p.v FROM d {own};

-- that on one day alone
{j} SELECT j.ts, CASE WHEN j.{rare} THEN p.v ELSE j.v END AS v FROM j LEFT JOIN {daily} p ON p.t = j.ts;

-- known a day later, taken now
{d} SELECT d.ts, (SELECT arg_max(v, t) FROM {daily} p WHERE p.available_at <= d.ts + INTERVAL 1 DAY) AS v FROM d;

-- ASOF on t
{d} SELECT d.ts, p.v FROM d ASOF LEFT JOIN {daily} p ON p.t <= d.ts;

-- lead
{j} SELECT ts, lead(v) {byTime} AS v FROM j;

-- lead on one day alone
{j} SELECT ts, CASE WHEN {rare} THEN lead(v) {byTime} ELSE v END AS v FROM j;

-- lead where nothing is known
{j} SELECT ts, coalesce(v, lead(v) {byTime}) AS v FROM j;

-- lag by less than nothing
{j} SELECT ts, lag(v, -1) {byTime} AS v FROM j;

-- a centred mean
{j} SELECT ts, avg(v) {frame ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING} AS v FROM j;

-- a range of a day ahead
{j} SELECT ts, max(v) {frame RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING} AS v FROM j;

-- the last value of all
{j} SELECT ts, last_value(v) {frame ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING} AS v FROM j;

-- the second value from here
{j} SELECT ts, nth_value(v, 2) {frame ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING} AS v FROM j;

-- a line between the last and the next
{j} SELECT ts, coalesce(v, (lag(v) {byTime} + lead(v) {byTime}) / 2) AS v FROM j;

-- the smaller of now and next, while all rise
{up} SELECT ts, least(v, lead(v) {byTime}) AS v FROM j;

-- that on one day alone
{up} SELECT ts, CASE WHEN {rare} THEN least(v, lead(v) {byTime}) ELSE v END AS v FROM j;

-- the larger of now and next, of what only falls
{up} SELECT ts, greatest(-v, lead(-v) {byTime}) AS v FROM j;

-- a stop that the next day would have met
{up} SELECT ts, coalesce(lead(v) {byTime} < v * 0.9, false) AS stopped FROM j;

-- whether anything is ever higher than a million
{j} SELECT ts, (SELECT max(v) > 1e6 FROM {daily} p WHERE p.available_at > j.ts) IS TRUE AS hot FROM j;

-- the mean of the whole sample
{j} SELECT ts, v - avg(v) OVER () AS v FROM j;

-- a z-score of the whole sample
{j} SELECT ts, (v - avg(v) OVER ()) / stddev(v) OVER () AS v FROM j;

-- scaled between the smallest and the largest
{j} SELECT ts, (v - min(v) OVER ()) / (max(v) OVER () - min(v) OVER ()) AS v FROM j;

-- quintiles of the whole sample
{j} SELECT ts, ntile(5) OVER (ORDER BY v, ts) AS q FROM j;

-- a rank among all
{j} SELECT ts, percent_rank() OVER (ORDER BY v) AS r FROM j;

-- outliers cut at quantiles of all
{j} SELECT ts, least(v, quantile_cont(v, 0.9) OVER ()) AS v FROM j;

-- the median of all
{j} SELECT ts, v / (SELECT median(v) FROM j) AS v FROM j;

-- the month's mean given to its days
{j} SELECT ts, avg(v) OVER (PARTITION BY date_trunc('month', ts)) AS v FROM j;

-- the share of the week's sum
{j} SELECT ts, v / sum(v) OVER (PARTITION BY date_trunc('week', ts)) AS v FROM j;

-- the week's highest day, marked
{j} SELECT ts, v = max(v) OVER (PARTITION BY date_trunc('week', ts)) AS top FROM j;

-- the direction of the next step
{j} SELECT ts, sign(lead(v) {byTime} - v) AS side FROM j;

-- a sum from the end
{j} SELECT ts, sum(v) OVER (ORDER BY ts DESC) AS v FROM j;

-- a slope fitted on everything
{j} SELECT ts, v - (SELECT regr_slope(v, epoch(ts)) FROM j) * epoch(ts) AS v FROM j;

-- a correlation of everything
{j} SELECT ts, v * (SELECT corr(v, n) FROM (SELECT v, lag(v) {byTime} AS n FROM j)) AS v FROM j;

-- the day of the highest value
{j} SELECT ts, ts < (SELECT arg_max(ts, v) FROM j) AS before FROM j;

-- the ten best days of all
{j} SELECT ts, v FROM j ORDER BY v DESC NULLS LAST, ts LIMIT 10;

-- the best day of each month
{j} SELECT ts, v FROM j QUALIFY row_number() OVER (PARTITION BY date_trunc('month', ts) ORDER BY v DESC, ts) = 1;

-- lows that were never undercut
{j} SELECT ts, v FROM j WHERE NOT EXISTS (FROM j AS k WHERE k.ts > j.ts AND k.v < j.v);

-- the price of the day itself
{d} SELECT d.ts, p.v FROM d LEFT JOIN price_usd p ON p.t = d.ts AND p.asset = 'BTC';

-- a part of the object of the day itself
{d} SELECT d.ts, c.v FROM d LEFT JOIN components c ON c.t = d.ts AND c.component = '/c' AND c.metric = '{whole}';

-- decisions moved by a day
{d}, m AS (SELECT ts + INTERVAL 1 DAY AS ts, asset FROM d) SELECT ts - INTERVAL 1 DAY AS ts, v FROM pit_join('m', '{metric}', '24h');

-- a window of values, moved by a day
{d}, m AS (SELECT ts + INTERVAL 1 DAY AS ts, asset FROM d) SELECT ts - INTERVAL 1 DAY AS ts, avg(v ORDER BY nth) AS v FROM pit_window('m', '{metric}', '24h', 3) GROUP BY ts;

-- the week's sum on its Monday
{d} SELECT d.ts, r.v FROM d LEFT JOIN resample('{priced}', '24h', '1w', 'sum') r ON r.t = date_trunc('week', d.ts) AND r.asset = d.asset;

-- the next value, looked up
{d} SELECT d.ts, (SELECT arg_min(v, t) FROM {daily} p WHERE p.t >= d.ts) AS v FROM d;

-- everything in one list
{j} SELECT ts, list_sum(list_transform((SELECT list(v ORDER BY ts) FROM j), lambda x: coalesce(x, 0))) AS s FROM j;
