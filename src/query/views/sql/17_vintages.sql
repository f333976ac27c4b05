-- vintages: every value that a point of a revisable series had, as known at `as_of` and as stored at
--   `observed_as_of`.
-- columns: metric, asset, interval, currency, exchange, network, t, ordinal, available_at, observed_at, v, o,
--   previous, previous_available_at, basis.
-- law: L1, L6. A vintage is known from its available_at and stays visible. A row of `points`, in contrast, is
--   replaced by the next vintage. The columns are qualified because macros inline this text.
CREATE OR REPLACE VIEW vintages AS
SELECT p.metric, p.asset, p."interval", p.currency, p.exchange, p.network, p.t,
  row_number() OVER (PARTITION BY p.metric, p.asset, p."interval", p.currency, p.exchange, p.network, p.t
    ORDER BY p.available_at, p.observed_at) AS ordinal,
  p.available_at, {{stored_by_then p.observed_at}} AS observed_at, p.v, p.o,
  lag(p.v) OVER (PARTITION BY p.metric, p.asset, p."interval", p.currency, p.exchange, p.network, p.t
    ORDER BY p.available_at, p.observed_at) AS previous,
  lag(p.available_at) OVER (PARTITION BY p.metric, p.asset, p."interval", p.currency, p.exchange, p.network, p.t
    ORDER BY p.available_at, p.observed_at) AS previous_available_at,
  p.basis
FROM (
  {{revisable_points}}
) AS p;
COMMENT ON VIEW vintages IS 'Every value that points of revisable series had, one row each: the first, and each that differs from the one before.';
{{series_comments vintages}}
COMMENT ON COLUMN vintages.t IS 'start of the interval that the point describes';
COMMENT ON COLUMN vintages.ordinal IS '1 is the first value. The highest number is the value that the view points shows';
COMMENT ON COLUMN vintages.available_at IS 'earliest time at which a live user could have known this value';
COMMENT ON COLUMN vintages.observed_at IS 'when this lake first stored it';
COMMENT ON COLUMN vintages.v IS 'scalar value; NULL if the value is null, an object or an array';
COMMENT ON COLUMN vintages.o IS 'object or array value whole, as JSON text';
COMMENT ON COLUMN vintages.previous IS 'v of the vintage before; NULL for the first';
COMMENT ON COLUMN vintages.previous_available_at IS 'time from which the previous vintage was known; NULL for the first';
COMMENT ON COLUMN vintages.basis IS 'source of available_at; observed: when this lake saw it';
