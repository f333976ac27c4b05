-- nearest_paths: the paths that a user may have meant, the nearest first.
-- columns: a scalar, VARCHAR[] of at most three.
-- law: none; the macro reads no data.
CREATE OR REPLACE MACRO nearest_paths(typed, paths) AS {{nearest_path typed paths}};
COMMENT ON MACRO nearest_paths IS 'nearest_paths(typed, paths): up to three paths of a list that contain every word typed, or nearly; else the one whose whole name is near.';
