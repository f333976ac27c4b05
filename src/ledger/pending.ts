import type { Selection } from '../catalog/series.ts'
import type { Instant } from '../time.ts'
import { type Index, parsed, proven } from './row.ts'
import { flag, listOf, maybe, real, shape, text } from './shape.ts'

/** Where a run says how much of its plan it did not ask: from then on that is on record as coverage. */
export const notAskedKey = 'not_asked'

const texts = listOf(text)
const some = maybe(texts)
const selectionFields = {
  assets: texts,
  paths: some,
  intervals: some,
  currencies: some,
  exchanges: some,
  networks: some,
}
const markFields = {
  selections: listOf(shape({ ...selectionFields, since: maybe(real), until: maybe(real), exact: maybe(flag) })),
  /** Whether all that the lake holds was selected, too. */
  held: flag,
}

/** What a run notes of its plan: by the selections it can be told again, in few bytes. */
export function selectionMarks(selections: readonly Selection[]) {
  const named = selections.filter(({ held }) => held !== true)
  return {
    selections: named.map((one) => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined))),
    held: named.length < selections.length,
  }
}

/** What was selected by fetches that have not said what they did not ask. */
export interface Pending {
  readonly selections: readonly Selection[]
  readonly held: boolean
  /** When the first of them began, microseconds; null where there is none. */
  readonly since: number | null
}

/**
 * The selections of fetches that were killed, or ended before anybody had answered, since the last one that put on record
 * what it did not ask. `but` is left aside: a run that is at work; and so is what a clock ahead dated later than `now`.
 */
export function pendingSelections(index: Index, now: Instant, but: string | null = null): Pending {
  const rows = index.statement(
    `SELECT plan, started_at FROM runs WHERE job = 'fetch' AND plan ->> '$.selections' IS NOT NULL AND id IS NOT ?1 AND started_at <= ?2
     AND started_at > coalesce((SELECT max(started_at) FROM runs
       WHERE job = 'fetch' AND actual ->> '$.${notAskedKey}' IS NOT NULL AND started_at <= ?2), 0)
     ORDER BY started_at`,
  )
  const found = rows.all(but, (now + 1) * 1_000_000)
  const marks = found.map(({ plan }) => proven(shape(markFields), parsed(plan, 'plan'), 'plan'))
  const unique = new Map(marks.flatMap(({ selections }) => selections).map((one) => [JSON.stringify(one), one]))
  const since = found[0] === undefined ? null : Number(found[0]['started_at'])
  return { selections: [...unique.values()], held: marks.some(({ held }) => held), since }
}

/** The run that began last and has not ended, where there is one. */
export function runAtWork(index: Index): string | null {
  const row = index
    .statement("SELECT id FROM runs WHERE job = 'fetch' AND ended_at IS NULL ORDER BY started_at DESC")
    .get()
  return row === undefined ? null : String(row['id'])
}
