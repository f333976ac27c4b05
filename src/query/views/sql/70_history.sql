-- history.<resource>: every version of every record ever known, half-open from one poll to the next.
-- columns: id, valid_from, valid_to, op, closed_by, inferred, the fields of the resource, record.
-- law: L1. The cut comes before the closing: a version that was closed after as_of is open.
CREATE OR REPLACE VIEW history."{{resource}}" AS
SELECT id, "at" AS valid_from,
  coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS valid_to,
  op, lead(coalesce(closed_by, op)) OVER (PARTITION BY id ORDER BY "at") AS closed_by,
  inferred, {{fields {{resource}}}} record
FROM {{files history.{{resource}}}}
WHERE ({{unset as_of}} OR "at" <= {{as_of}}) AND ({{unset observed_as_of}} OR "at" <= {{observed_as_of}})
QUALIFY op IS NOT NULL;
COMMENT ON VIEW history."{{resource}}" IS 'Every state of the {{resource}}: valid from valid_from on, and no longer at valid_to.';
COMMENT ON COLUMN history."{{resource}}".id IS 'id of the record, as assigned by the registry';
COMMENT ON COLUMN history."{{resource}}".valid_from IS 'the poll that returned this state';
COMMENT ON COLUMN history."{{resource}}".valid_to IS 'the poll that ended it, exclusive; infinity while it is open';
COMMENT ON COLUMN history."{{resource}}".op IS 'what opened it: snapshot, lists (found while pitlake read the registry list by list, without a snapshot), created or updated';
COMMENT ON COLUMN history."{{resource}}".closed_by IS 'what ended it: updated, deleted, cascade (its product was deleted), or snapshot or lists (the record was absent from it)';
COMMENT ON COLUMN history."{{resource}}".inferred IS 'true if the feed could not be followed: the change happened at some time before valid_from';
COMMENT ON COLUMN history."{{resource}}".record IS 'the whole record as received, JSON';
{{field_comments history."{{resource}}"}}
