import { sha256 } from '../ledger/entry.ts'
import { heldStates } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { shape, text } from '../ledger/shape.ts'
import type { Micros } from '../time.ts'
import { Engine } from '../store/engine.ts'
import { findingLine, readHeld, readVerifyFindings, tableFiles } from './held.ts'
import type { RecordFinding } from './history.ts'

/** Where the state keeps of which findings a person took note. */
export const acceptedPrefix = 'registry.accepted.'

/** A contradiction that a verify found, and who took note of it. */
export interface ListedFinding extends Required<Omit<RecordFinding, 'id'>> {
  readonly id: string
  /** The registry's id of the record. */
  readonly record: string
  readonly found_at: Micros
  readonly accepted_at: Micros | null
  readonly why: string | null
  /** Whether the lake has taken over another state of the record since: nothing is left to look at. */
  readonly settled: boolean
}

/** The name of a finding for people: another one for each offered record. */
export function findingId(finding: RecordFinding): string {
  return sha256(findingLine(finding)).slice(0, 12)
}

/** Of which findings a person took note, by their ids. */
export function acceptedFindings(ledger: Ledger): Map<string, { readonly at: Micros; readonly why: string }> {
  const rows = heldStates(ledger, acceptedPrefix, shape({ why: text }))
  return new Map(rows.map(({ key, value, at }) => [key, { at, why: value.why }]))
}

/** Whether there is something to look at: nobody took note, and no later state of the record settles it. */
export function isOpenFinding({ accepted_at, settled }: Pick<ListedFinding, 'accepted_at' | 'settled'>): boolean {
  return accepted_at === null && !settled
}

/** Kinds that a later state of the record in the lake settles. */
const settling: ReadonlySet<string> = new Set(['lost_event', 'wrong_retirement', 'silent_change'])

/** What verifies found in these resources (null: all), the oldest first. */
export async function listFindings(ledger: Ledger, resources: readonly string[] | null): Promise<ListedFinding[]> {
  if (tableFiles(ledger, 'registry_findings').length === 0) return []
  using engine = await Engine.open(':memory:', { threads: 1 })
  const rows = await readVerifyFindings(ledger, engine)
  const chosen = rows.filter(({ resource }) => resources?.includes(resource) ?? true)
  const held = await readHeld(ledger, engine, [...new Set(chosen.map(({ resource }) => resource))])
  const accepted = acceptedFindings(ledger)
  return chosen.map(({ id: record, ...row }): ListedFinding => {
    const id = findingId({ ...row, id: record })
    const note = accepted.get(id)
    const since = held.get(row.resource)?.get(record)?.at ?? 0
    const settled = settling.has(row.kind) && since > row.found_at
    return { ...row, id, record, accepted_at: note?.at ?? null, why: note?.why ?? null, settled }
  })
}
