-- <resource>: the registry as known at as_of, one row for each record that existed then.
-- columns: id, the fields of the resource, record, valid_from, inferred, as_of, as_of_at, assumed.
-- law: L1, L6. A state is known from the poll that returned it. Before the first snapshot a state is shown only with
--   registry_backfill, and marked as assumed.
--   A condition on the single column superseded_at leaves out superseded states. The scan skips row groups that
--   contain only such states.
CREATE OR REPLACE VIEW "{{resource}}" AS
SELECT id, {{fields {{resource}}}} record, "at" AS valid_from, inferred, as_of, as_of_at,
  coalesce("at" > {{as_of}}, false) AS assumed
FROM {{files history.{{resource}}}}
WHERE ({{unset as_of}} OR "at" <= CASE WHEN {{registry_backfill}}
    THEN greatest({{as_of}}, (SELECT min(observed_at) FROM {{files snapshots}})) ELSE {{as_of}} END)
  AND ({{unset observed_as_of}} OR "at" <= {{observed_as_of}})
  AND CASE WHEN {{registry_backfill}} THEN true
    WHEN {{unset as_of}} AND {{unset observed_as_of}} THEN superseded_at IS NULL
    ELSE superseded_at IS NULL OR superseded_at > least({{as_of}}, {{observed_as_of}}) END
QUALIFY row_number() OVER (PARTITION BY id ORDER BY "at" DESC) = 1 AND op IS NOT NULL;
COMMENT ON VIEW "{{resource}}" IS 'The {{resource}} of the registry as known at as_of.';
COMMENT ON COLUMN "{{resource}}".id IS 'id of the record, as assigned by the registry';
COMMENT ON COLUMN "{{resource}}".record IS 'the whole record as received, JSON';
COMMENT ON COLUMN "{{resource}}".valid_from IS 'the poll that returned this state';
COMMENT ON COLUMN "{{resource}}".inferred IS 'true if the feed could not be followed: the change happened at some time before valid_from';
COMMENT ON COLUMN "{{resource}}".as_of IS 'the field as_of of the answer that returned it, as text; not the session variable';
COMMENT ON COLUMN "{{resource}}".as_of_at IS 'the same as a timestamp';
COMMENT ON COLUMN "{{resource}}".assumed IS 'true if registry_backfill added the row: it is from the first snapshot and was not known at this as_of';
{{field_comments "{{resource}}"}}
