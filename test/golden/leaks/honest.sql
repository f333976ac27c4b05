-- Honest queries of the same forms.

-- what was known
{d} SELECT ts, asset, v FROM pit_join('d', '{metric}', '24h');

-- the last value before this one
{j} SELECT ts, lag(v) {byTime} AS v FROM j;

-- known a day ago
{d} SELECT d.ts, (SELECT arg_max(v, t) FROM {daily} p WHERE p.available_at <= d.ts - INTERVAL 1 DAY) AS v FROM d;

-- ASOF on available_at
{d} SELECT d.ts, p.v FROM d ASOF LEFT JOIN {daily} p ON p.available_at <= d.ts;

-- a mean of the last three
{j} SELECT ts, avg(v) {frame ROWS BETWEEN 2 PRECEDING AND CURRENT ROW} AS v FROM j;

-- the smaller of now and before
{up} SELECT ts, least(v, lag(v) {byTime}) AS v FROM j;

-- the largest so far
{j} SELECT ts, max(v) {byTime} AS v FROM j;

-- a logarithm of a step
{up} SELECT ts, ln(v / lag(v) {byTime}) AS r FROM j;

-- a rank among the last twenty
{j} SELECT ts, list_position(list_sort(list(v) {frame ROWS BETWEEN 19 PRECEDING AND CURRENT ROW}), v) AS r FROM j;

-- how many points are known
{d} SELECT d.ts, (SELECT count(*) FROM {daily} p WHERE p.available_at <= d.ts) AS n FROM d;

-- a filter of a known value
{j} SELECT ts, v FROM j WHERE v > 1040;

-- the price
{d} SELECT ts, v FROM pit_join('d', 'price_usd', '24h');

-- a part of an object
{d} SELECT ts, v FROM pit_join('d', '{whole}#/c', '24h');

-- the universe of each day
WITH d AS (SELECT ts FROM calendar('2024-02-01', '2024-08-01', '3 days')) SELECT ts, count(*) AS n FROM pit_universe('d') GROUP BY ts;
