-- registry_findings: what the registry did against its own rules, and where two of its answers disagree.
-- columns: found_at, kind, resource, id, detail.
-- law: L1. Recorded, never corrected: the newest observation is what history holds.
CREATE OR REPLACE VIEW registry_findings AS
SELECT "at" AS found_at, kind, resource, id, detail
FROM {{files registry_findings}}
WHERE ({{as_of}} IS NULL OR "at" <= {{as_of}}) AND ({{observed_as_of}} IS NULL OR "at" <= {{observed_as_of}});
COMMENT ON VIEW registry_findings IS 'Contradictions of the registry: returned ids, both places of a deployment.';
COMMENT ON COLUMN registry_findings.found_at IS 'the poll that showed it';
COMMENT ON COLUMN registry_findings.kind IS 'returned or embedded_disagrees; in older lakes also feed_disagrees';
COMMENT ON COLUMN registry_findings.resource IS 'the resource of the record';
COMMENT ON COLUMN registry_findings.id IS 'id of the registry';
COMMENT ON COLUMN registry_findings.detail IS 'what is contradicted';
