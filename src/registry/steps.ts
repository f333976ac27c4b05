import { type Folded, type Step, observeEvent, type Poll } from './history.ts'
import type { Lines } from './lines.ts'
import type { FeedEvent } from './bodies.ts'
import { textHash } from './record.ts'

/** What a poll comes to, while its lines are written. */
export interface Change {
  /** The text of each record that changed, by resource and id; null for one that is gone. */
  readonly texts: Map<string, Map<string, string | null>>
  /** By how many the open rows of each table grow. */
  readonly growth: Record<string, number>
  /** Versions of records, those that they embed not counted. */
  opened: number
  updated: number
  closed: number
}

/** Nothing has changed yet. */
export function newChange(): Change {
  return { texts: new Map(), growth: {}, opened: 0, updated: 0, closed: 0 }
}

/** Writes one step as a line of its history; the names of the files are those of the tables. */
export function writeStep(lines: Lines, change: Change, step: Step): void {
  const { table, id, op, text, child } = step
  lines.add(`history.${table}`, stepRow(step))
  change.growth[table] = (change.growth[table] ?? 0) + (op === null ? -1 : op === 'updated' ? 0 : 1)
  if (child) return
  note(change, table, id, text)
  if (op === null) change.closed++
  else if (op === 'updated') change.updated++
  else change.opened++
}

/** Writes what a poll came to beside its steps. */
export function writeFolded(lines: Lines, change: Change, { absorbed, newKeys, findings }: Folded): void {
  for (const { resource, id, text, hash } of absorbed) {
    note(change, resource, id, text)
    lines.add('absorbed', { resource, id, hash, record: text })
  }
  for (const key of newKeys) lines.add('schema_changes', key)
  for (const finding of findings) lines.add('registry_findings', finding)
}

function note({ texts }: Change, table: string, id: string, text: string | null): void {
  const known = texts.get(table)
  if (known) known.set(id, text)
  else texts.set(table, new Map([[id, text]]))
}

function stepRow(step: Step): object {
  const { id, op, closedBy, inferred, source, hash, text, child, fields } = step
  const head = { id, op, closed_by: closedBy, inferred, source, hash, record: text }
  if (!child) return { ...head, ...fields }
  const { parent_type, parent_id, ordinal, content_hash } = child
  return { ...head, parent_type, parent_id, ordinal, content_hash }
}

/** What takes events into a poll: those that repeat the last one of their entity (`last`) leave no line and are no news. */
export function eventTaker(poll: Poll, lines: Lines, last: Map<string, string>): (event: FeedEvent) => boolean {
  let position = 0
  return (event) => {
    const { type, resource, id, op, incoming, text } = event
    const name = `${type} ${id}`
    const hash = textHash(incoming ? incoming.hash : 'deleted')
    observeEvent(poll, event)
    if (last.get(name) === hash) return false
    last.set(name, hash)
    lines.add('events', { position: position++, entity_type: type, resource, entity_id: id, op, hash, event: text })
    return true
  }
}
