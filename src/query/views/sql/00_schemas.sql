-- schemas: the schemas of the registry's histories and of its dated snapshots.
-- law: L1. Everything outside `main` is dated by the registry's clock.
CREATE SCHEMA IF NOT EXISTS history;
CREATE SCHEMA IF NOT EXISTS snapshots;
