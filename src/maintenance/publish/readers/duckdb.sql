-- Point-in-time queries for DuckDB over the tables at {{uri}}.
-- Needs the extension: INSTALL delta; LOAD delta. Times without a zone mean UTC; durations are seconds.
--   SELECT * FROM pit_points(as_of := '2024-03-01T00:00:00Z');
--   SELECT * FROM pit_join('decisions', 'supply/current_pit', '24h', currency := 'usd', max_age := 172800);
--   SELECT * FROM universe(as_of := '2024-11-10');
-- The options are those of the joins of the lake: currency, exchange, network, max_age, latency, skip_nulls, as_of,
-- observed_as_of, backfill ('strict' or 'rule'). Rename your columns if pit_join adds one of that name.
CREATE OR REPLACE MACRO pit_points(as_of := NULL, observed_as_of := NULL, backfill := 'strict') AS TABLE
{{points}};

CREATE OR REPLACE MACRO pit_join(decisions, metric, "interval", currency := NULL, exchange := NULL, network := NULL,
  max_age := NULL, latency := NULL, skip_nulls := false, as_of := NULL, observed_as_of := NULL, backfill := 'strict')
  AS TABLE
{{text pit_join}};

CREATE OR REPLACE MACRO universe(as_of := NULL, observed_as_of := NULL) AS TABLE
{{text universe}};
