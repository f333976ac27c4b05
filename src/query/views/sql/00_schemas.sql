-- schemas: the rooms of the registry's histories and dated snapshots.
-- law: L1. Everything outside `main` is dated by the registry's clock.
CREATE SCHEMA IF NOT EXISTS history;
CREATE SCHEMA IF NOT EXISTS snapshots;
