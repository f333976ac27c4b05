import type { Settled, Step } from '../registry/history.ts'
import type { Lines } from './registry-lines.ts'

/** Writes what a poll came to as lines of the append-only tables; names of the files are those of the tables. */
export function writeSteps(lines: Lines, settled: Settled): void {
  for (const [table, steps] of Map.groupBy(settled.steps, (step) => step.table))
    for (const step of inOrder(steps)) lines.add(`history.${table}`, stepRow(step))
  for (const { resource, id, text, hash } of settled.absorbed)
    lines.add('absorbed', { resource, id, hash, record: text })
  for (const key of settled.newKeys) lines.add('schema_changes', key)
  for (const finding of settled.findings) lines.add('registry_findings', finding)
}

/** Steps by id: records of one kind side by side are smaller. */
function inOrder(steps: readonly Step[]): readonly Step[] {
  return steps.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
}

function stepRow(step: Step): object {
  const { id, op, closedBy, inferred, source, hash, text, child, fields } = step
  const head = { id, op, closed_by: closedBy, inferred, source, hash, record: text }
  if (!child) return { ...head, ...fields }
  const { parent_type, parent_id, ordinal, content_hash } = child
  return { ...head, parent_type, parent_id, ordinal, content_hash }
}
