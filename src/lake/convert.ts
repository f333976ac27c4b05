import { rm } from 'node:fs/promises'
import type { Window } from '../windows.ts'
import { fewRows } from './compression.ts'
import type { Lexed } from './body-lexer.ts'
import { findClocks } from './convert-clocks.ts'
import { type Contradiction, compare, type Tally } from './convert-compare.ts'
import { convertDirectly } from './convert-direct.ts'
import { findHoles } from './convert-holes.ts'
import type { BodyResult, ConvertJob, ConvertResult, WrittenFile } from './convert-job.ts'
import { load } from './convert-load.ts'
import { type Ordered, order } from './convert-order.ts'
import { describe, readBack, writePoints } from './convert-write.ts'
import type { Engine } from './engine.ts'
import type { Violation } from './entry.ts'

/**
 * Turns spool files into one sorted Parquet file of the points that are new, and tells everything else: which bodies
 * are poison and why, what contradicts the points that are held, what is missing. No point becomes a JavaScript object
 * but one that contradicts. Works in a session of its own; commits nothing.
 */
export async function convert(engine: Engine, job: ConvertJob): Promise<ConvertResult> {
  const session = await engine.session()
  try {
    const ordered = order(job.bodies)
    const lexed = new Map<number, Lexed>()
    const direct = await convertDirectly(session, job, ordered, lexed)
    if (!direct) return await convertStaged(session, job, ordered, lexed)
    return { file: direct.file, bodies: bodyResults(ordered, direct), violations: [], findings: [] }
  } catch (error) {
    await rm(job.out, { force: true })
    throw error
  } finally {
    session.close()
  }
}

/** Reads all bodies into tables, compares them with one another and with what is held, and writes what is new. */
async function convertStaged(
  session: Engine,
  job: ConvertJob,
  ordered: readonly Ordered[],
  lexed: Map<number, Lexed>,
): Promise<ConvertResult> {
  const files = ordered.map(({ body }) => body.file)
  const { staged, poison } = await load(session, job, files, lexed)
  const { tallies, contradictions, late, minusZero } = await compare(session, job, ordered, { staged, poison })
  const told = [...staged.values()].some((body) => body.told > 0)
  const findings = told ? await findClocks(session, job, ordered) : []
  const added = [...tallies.values()].reduce((sum, tally) => sum + tally.added, 0)
  let file: WrittenFile | null = null
  if (added > 0) {
    const { out } = job
    const fresh = { source: 'fresh', place: 'rank' as const, sorted: true, late, minusZero }
    await writePoints(session, job, ordered, { ...fresh, few: added <= fewRows, out })
    file = describe(await readBack(session, job, { out, told: false }))
    if (file.rows !== added) throw new Error(`${job.out} holds ${file.rows} rows instead of ${added}`)
  }
  const source = (bodies: readonly number[]): string => `(FROM offered WHERE keep AND body IN (${bodies.join(', ')}))`
  const holes = await findHoles(session, job, { ordered, poison, tallies, source })
  const points = new Map([...staged].map(([i, body]) => [i, body.points]))
  const bodies = bodyResults(ordered, { poison, points, tallies, holes })
  return { file, bodies, violations: contradictions.map((found) => violation(found, job, ordered)), findings }
}

/** What is known of the bodies, by position. */
interface Facts {
  /** Why a body is poison. */
  readonly poison: ReadonlyMap<number, string>
  /** How many points a body has that is not empty. */
  readonly points: ReadonlyMap<number, number>
  readonly tallies: ReadonlyMap<number, Tally>
  readonly holes: ReadonlyMap<number, Window[]>
}

/** The results in the order of the job. */
function bodyResults(ordered: readonly Ordered[], { poison, points, tallies, holes }: Facts): BodyResult[] {
  const results = ordered.map(({ body, ord }, i) => {
    const reason = poison.get(i) ?? null
    const held = points.get(i)
    const tally = tallies.get(i)
    const state = reason !== null ? ('poison' as const) : held === undefined ? ('empty' as const) : ('ok' as const)
    return {
      ord,
      result: {
        request: body.request,
        series: body.series.id,
        state,
        reason,
        points: held ?? 0,
        first: tally?.first ?? null,
        last: tally?.last ?? null,
        added: tally?.added ?? 0,
        addedFirst: tally?.addedFirst ?? null,
        addedLast: tally?.addedLast ?? null,
        missing: holes.get(i) ?? [],
      },
    }
  })
  return results.toSorted((a, b) => a.ord - b.ord).map(({ result }) => result)
}
function violation(found: Contradiction, job: ConvertJob, ordered: readonly Ordered[]): Violation {
  const body = ordered[found.body]?.body
  return {
    series: body?.series.id ?? '',
    t: found.t,
    kind: found.kind,
    stored: found.stored,
    offered: found.offered,
    stored_at: found.storedAt,
    offered_at: Number(job.observedAt),
    request: body?.request ?? null,
  }
}
