-- nearest: the known word nearest to a misspelt one, if any is near enough.
-- columns: a scalar, VARCHAR[] of at most one.
-- law: none; the macro reads no data.
CREATE OR REPLACE MACRO nearest(word, known) AS {{nearest word known}};
COMMENT ON MACRO nearest IS 'nearest(word, known): the name of a list that may have been meant, as a list of at most one.';
