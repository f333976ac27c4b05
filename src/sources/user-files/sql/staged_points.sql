-- staged_points: the user's rows as points of their series, in the form of a provider's answer.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds).
-- law: L7. Values are passed on as they were read.
CREATE TEMP VIEW staged_points AS
SELECT {{body}} AS body, {{start}} AS t, {{values}} FROM {{source}}
