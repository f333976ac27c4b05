-- Point-in-time queries for ClickHouse over the tables at {{uri}}.
-- Make a table or view pit_decisions with asset and ts (and any other columns) before you query pit_join.
-- Options are one text of JSON; '{}' where there are none. Times without a zone mean UTC; durations are seconds.
--   SELECT * FROM pit_points(options = '{"as_of": "2024-03-01T00:00:00Z"}');
--   SELECT * FROM pit_join(metric = 'supply/current_pit', interval = '24h', options = '{"currency": "usd", "max_age": 172800}');
--   SELECT * FROM universe(options = '{"as_of": "2024-11-10"}');
-- The options are those of the joins of the lake: currency, exchange, network, max_age, latency, skip_nulls, as_of,
-- observed_as_of, backfill ("strict" or "rule"). A bucket needs its address and keys as the engine wants them.
CREATE OR REPLACE VIEW pit_points AS
SELECT points.* FROM (
{{points}}
) AS points WHERE {{option_check}} = 0;

CREATE OR REPLACE VIEW pit_join AS
{{text pit_join}}
SETTINGS join_use_nulls = 1;

CREATE OR REPLACE VIEW universe AS
SELECT known.* FROM (
{{text universe}}
) AS known WHERE {{option_check}} = 0
SETTINGS join_use_nulls = 1;
