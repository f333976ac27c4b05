-- Point-in-time queries for Spark SQL (4.0 or later, with Delta Lake) over the tables at {{uri}}.
-- Make a temporary view pit_decisions with asset and ts (and any other columns) before this text is run.
-- Options are session variables, NULL where not given; durations are seconds:
--   SET VAR pit_metric = 'supply/current_pit'; SET VAR pit_currency = 'usd'; SET VAR pit_max_age = 172800;
--   SELECT * FROM pit_join;
--   SET VAR pit_as_of = TIMESTAMP '2024-03-01 00:00:00'; SELECT * FROM pit_points; SELECT * FROM universe;
-- The options are those of the joins of the lake. pit_as_of and pit_observed_as_of move all three views.
SET TIME ZONE 'UTC';
DECLARE OR REPLACE VARIABLE pit_metric STRING;
DECLARE OR REPLACE VARIABLE pit_interval STRING DEFAULT '24h';
DECLARE OR REPLACE VARIABLE pit_currency STRING;
DECLARE OR REPLACE VARIABLE pit_exchange STRING;
DECLARE OR REPLACE VARIABLE pit_network STRING;
DECLARE OR REPLACE VARIABLE pit_max_age DOUBLE;
DECLARE OR REPLACE VARIABLE pit_latency DOUBLE;
DECLARE OR REPLACE VARIABLE pit_skip_nulls BOOLEAN DEFAULT false;
DECLARE OR REPLACE VARIABLE pit_as_of TIMESTAMP;
DECLARE OR REPLACE VARIABLE pit_observed_as_of TIMESTAMP;
DECLARE OR REPLACE VARIABLE pit_backfill STRING DEFAULT 'strict';

CREATE OR REPLACE TEMPORARY VIEW pit_points AS
{{points}};

CREATE OR REPLACE TEMPORARY VIEW universe AS
{{text universe}};

CREATE OR REPLACE TEMPORARY VIEW pit_join AS
{{text pit_join}};
