-- registry_findings: contradictions of the registry to its own rules, and differences between two of its answers.
-- columns: found_at, kind, resource, id, detail, held, offered, acknowledged_at, why.
-- law: L1. Findings are recorded and never corrected: history shows the newest observation. Acknowledgements obey
--   ledger_as_of.
CREATE OR REPLACE VIEW registry_findings AS
SELECT "at" AS found_at, kind, resource, id, detail, held, offered, notes.acknowledged_at, notes.why
FROM {{files registry_findings}} AS found
LEFT JOIN (
  FROM {{ledger accepted_findings}} WHERE {{by_then acknowledged_at}}
) AS notes ON notes.finding = left(sha256(concat_ws(chr(10), kind, resource, id, detail, md5(held), md5(offered))), 12)
WHERE ({{unset as_of}} OR "at" <= {{as_of}}) AND ({{unset observed_as_of}} OR "at" <= {{observed_as_of}});
COMMENT ON VIEW registry_findings IS 'Contradictions in the registry: ids that returned after their removal, deployments that the list of deployments and the product describe differently, and findings of verify.';
COMMENT ON COLUMN registry_findings.found_at IS 'the poll or the verify that found it';
COMMENT ON COLUMN registry_findings.kind IS 'returned: a removed id came back. embedded_disagrees: the list of deployments and the product describe a deployment differently. lost_event: a record was added, removed or retired upstream without an event. wrong_retirement: inactive or removed in the lake, active upstream. silent_change: other fields of a record changed upstream without an event. address_disagrees: a list has the record, but the address of the record does not. list_disagrees: a list omits the record or shows it differently';
COMMENT ON COLUMN registry_findings.resource IS 'the resource of the record';
COMMENT ON COLUMN registry_findings.id IS 'id of the record, as assigned by the registry';
COMMENT ON COLUMN registry_findings.detail IS 'what is contradicted';
COMMENT ON COLUMN registry_findings.held IS 'the record in the lake, JSON; NULL if there is none, or if a poll found the contradiction';
COMMENT ON COLUMN registry_findings.offered IS 'the record of the provider, JSON; NULL if there is none, or if a poll found the contradiction';
COMMENT ON COLUMN registry_findings.acknowledged_at IS 'when a person acknowledged it; NULL if not acknowledged';
COMMENT ON COLUMN registry_findings.why IS 'the reason that the person gave';
