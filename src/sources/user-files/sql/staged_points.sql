-- staged: the user's rows as points of their series, the same as what a provider answers.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds).
-- law: L7.
CREATE TEMP VIEW staged_points AS
SELECT {{body}} AS body, {{start}} AS t, {{held}} FROM {{source}}
