import type { Standing } from '../ledger/differences.ts'
import type { Instant } from '../time.ts'
import type { Engine } from '../store/engine.ts'
import type { Heard } from './conversion.ts'
import type { Ordered } from './order.ts'
import { numbered, rowsSql, statement } from './sql.ts'

/** A contradiction, by position of the body that brought it. */
export interface Contradiction {
  readonly body: number
  readonly t: Instant
  readonly kind: string
  readonly stored: string
  readonly offered: string | null
  /** Microseconds. */
  readonly stored_at: number
}

const standingColumns = 'n INTEGER, rank INTEGER, t BIGINT, until BIGINT, offered_at BIGINT'

/** What the answers say of differences that are on record, point by point; `seen` is what they show. */
export async function hear(
  session: Engine,
  ordered: readonly Ordered[],
  seen: readonly Contradiction[],
): Promise<Heard[]> {
  const ranks = new Map(ordered.map(({ rank, body }) => [rank, body.standing ?? []]))
  const all = [...ranks].flatMap(([rank, own]) => own.map((standing) => ({ rank, standing })))
  if (all.length === 0) return []
  const rows = all.map(({ rank, standing: { t, until = t + 1, offered_at } }, n) => {
    return { n, rank, t, until, offered_at: Math.floor(offered_at / 1_000_000) }
  })
  await session.run(`CREATE TEMP TABLE standing AS ${rowsSql(standingColumns, rows)}`)
  const shown = new Set(seen.map(({ body, ...one }) => nameOf(body, one)))
  const told = await numbered<{ n: number; t: Instant; body: number | null }>(session, statement('heard'))
  return told.flatMap(({ n, t, body }) => {
    const standing = all[n]?.standing
    if (standing === undefined) return []
    return [{ standing, t, shown: body === null ? null : shown.has(nameOf(body, { ...standing, t })) }]
  })
}

function nameOf(body: number, { t, kind, offered }: Pick<Standing, 't' | 'kind' | 'offered'>): string {
  return JSON.stringify([body, t, kind, offered])
}
