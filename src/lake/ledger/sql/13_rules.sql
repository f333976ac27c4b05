-- rules: the availability rules from the version on that brought them in.
-- columns: version, digest, rules (JSON).
-- law: L6. A stamped result keeps the rules it was made with.
CREATE TABLE IF NOT EXISTS rules (version INTEGER PRIMARY KEY, digest TEXT NOT NULL, rules TEXT NOT NULL);
