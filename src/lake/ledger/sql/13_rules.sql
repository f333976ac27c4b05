-- rules: the availability rules, from the version that introduced them.
-- columns: version, digest, rules (JSON).
-- law: L6. A stamped result keeps the rules with which it was computed.
CREATE TABLE IF NOT EXISTS rules (version INTEGER PRIMARY KEY, digest TEXT NOT NULL, rules TEXT NOT NULL);
