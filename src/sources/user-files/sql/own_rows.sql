-- own_rows: what a mapping takes from each row of the user's files, sorted as a points file is.
-- columns: those of the mapping's dimensions, v, o, extra and computed (microseconds) where the mapping or the value has
--   them, day (of a dated export), mark (t as it is written, seconds).
-- law: L7. A row with anything that cannot be used ends the reading: nothing is taken of half of a file.
CREATE TABLE own_rows AS
SELECT * {{replaced}} FROM {{rows}}
ORDER BY {{order}}
