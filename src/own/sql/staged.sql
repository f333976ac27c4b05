-- staged: the user's rows as points of their series, the same as what a provider answers.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds).
-- law: L7.
-- A join lets threads pass one another: what counts the rows below it makes that one thread, and the order stays.
CREATE TEMP VIEW staged AS
SELECT body, {{start}} AS t, {{held}} FROM (FROM own_rows QUALIFY row_number() OVER () > 0) {{joined}}
