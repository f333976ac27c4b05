-- user_rows: the columns that a mapping reads from each row of the user's files, sorted like a points file.
-- columns: those of the mapping's dimensions; v, o, extra and computed (microseconds) if the mapping or the value has
--   them; day (of a dated export); mark (t as written, seconds).
-- law: L7. A row with an unusable value ends the import: no part of a file is imported.
CREATE TABLE user_rows AS
SELECT * {{replaced}} FROM {{rows}}
ORDER BY {{order}}
