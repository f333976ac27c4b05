import pLimit from 'p-limit'
import { fewRows, parquet } from '../store/parquet.ts'
import { realDisk } from '../store/disk.ts'
import { sizeOf } from '../store/files.ts'
import type { Lexed } from './lexer.ts'
import { findClocks } from './clocks.ts'
import { compare, type Comparison, type Contradiction, tellAsked } from './compare.ts'
import { convertDirectly, type Facts } from './direct.ts'
import { findHoles } from './holes.ts'
import {
  bodyAt,
  type BodyResult,
  type ConvertJob,
  type ConvertPart,
  type ConvertResult,
  emptyTally,
  order,
  type Ordered,
  type PartJob,
  type WrittenFile,
  type WrittenRecent,
} from './conversion.ts'
import { load } from './load.ts'
import { statement } from './sql.ts'
import { describe, leadOf, readShares, shareOf, stagedDating, writePoints } from './write.ts'
import { type Engine, quote } from '../store/engine.ts'
import { portionRows, recentGroup } from './files.ts'
import type { Violation } from '../ledger/entry.ts'

/** So long bodies are written straight to their partition's file where that can be proved. */
const usuallyLong = 1_000_000
/** How many of those are written at a time: reading JSON keeps one processor busy. */
const longAtOnce = 2

/**
 * Turns the spool files of a batch into sorted Parquet files of the points that are new, one for all that comes in
 * small portions and one for each partition that gets many, and tells everything else: which bodies are poison and why, what contradicts the points that are held, what is missing. All
 * bodies are read and compared together, in as many statements for one partition as for a hundred; long ones have a
 * shorter way. No point becomes a JavaScript object but one that contradicts. Works in a session of its own; commits
 * nothing.
 */
export async function convert(engine: Engine, job: ConvertJob): Promise<ConvertResult> {
  using session = await engine.session()
  try {
    const lexed = new Map<string, Lexed>()
    const parts = job.parts.map((part): PartJob => ({ ...job, ...part }))
    const files: (WrittenFile | null)[] = parts.map(() => null)
    const bodies: BodyResult[][] = parts.map(() => [])
    const place = pLimit(longAtOnce)
    const long = parts.map(async (part, p) => {
      if (!(await isLong(part, job.longBytes ?? usuallyLong))) return
      await place(async () => {
        using own = await engine.session()
        const ordered = order([part])
        const direct = await convertDirectly(own, part, ordered, lexed)
        if (!direct) return
        files[p] = direct.file
        bodies[p] = bodyResults(ordered, direct).map(({ result }) => result)
      })
    })
    const ends = await Promise.allSettled(long)
    // Not before all have ended: they work in the same database.
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    const rest = parts.flatMap((part, p) => (bodies[p]?.length === part.bodies.length ? [] : [p]))
    const staged = await convertStaged(
      session,
      job,
      rest.map((p) => parts[p] as PartJob),
      lexed,
    )
    for (const [i, p] of rest.entries()) {
      files[p] = staged.files.get(i) ?? null
      bodies[p] = staged.bodies.filter(({ part }) => part === i).map(({ result }) => result)
    }
    const { recent, violations, heard, findings, regained } = staged
    return { files, recent, bodies: bodies.flat(), violations, heard, findings, regained }
  } catch (error) {
    for (const { out } of [...job.parts, job.recent]) await realDisk.remove(out)
    throw error
  }
}

async function isLong({ bodies }: ConvertPart, longBytes: number): Promise<boolean> {
  let bytes = 0
  for (const { file } of bodies) bytes += await sizeOf(file)
  return bytes >= longBytes
}

/** Reads all bodies into tables, compares them with one another and with what is held, and writes what is new. */
async function convertStaged(session: Engine, job: ConvertJob, parts: readonly PartJob[], lexed: Map<string, Lexed>) {
  const ordered = order(parts)
  if (ordered.length === 0)
    return {
      files: new Map<number, WrittenFile>(),
      recent: null,
      bodies: [],
      violations: [],
      heard: [],
      findings: [],
      regained: [],
    }
  await tellAsked(session, ordered)
  const spooled = ordered.map(({ body }) => body.file)
  const what = { circumstances: job, files: spooled, temporary: job.recent.out, lexed }
  const { staged, poison } = await load(session, what)
  const { tallies, contradictions, heard, late, minusZero, regained } = await compare(session, ordered, {
    staged,
    poison,
  })
  const told = [...staged.values()].some((body) => body.told > 0)
  const findings = told ? await findClocks(session, ordered) : []
  const written = await writeFresh(session, job, ordered, { tallies, late, minusZero })
  const source = (bodies: readonly number[]): string => `(FROM offered WHERE keep AND body IN (${bodies.join(', ')}))`
  const holes = await findHoles(session, { ordered, poison, tallies, source })
  const points = new Map([...staged].map(([i, body]) => [i, body.points]))
  const bodies = bodyResults(ordered, { poison, points, tallies, holes })
  const violations = contradictions.map((found) => violation(found, ordered))
  return { ...written, bodies, violations, heard, findings, regained }
}

/** Writes the table `fresh`: large portions to files of their own, by partition, all others together. */
async function writeFresh(
  session: Engine,
  job: ConvertJob,
  ordered: readonly Ordered[],
  { tallies, late, minusZero }: Pick<Comparison, 'tallies' | 'late' | 'minusZero'>,
): Promise<{ files: Map<number, WrittenFile>; recent: WrittenRecent | null }> {
  const added = new Map<number, number>()
  for (const [i, { p }] of ordered.entries()) added.set(p, (added.get(p) ?? 0) + (tallies.get(i)?.added ?? 0))
  const dating = stagedDating(ordered)
  const most = Math.max(0, ...added.values())
  const sorted = !late && most > fewRows && !(await isUnsorted(session))
  const write = async (chosen: readonly number[], out: string, own: PartJob | null): Promise<WrittenRecent> => {
    const rows = chosen.reduce((sum, p) => sum + (added.get(p) ?? 0), 0)
    const source = `(FROM fresh WHERE part IN (${chosen.join(', ')}))`
    const how = { place: 'rank', sorted, late, minusZero, few: own === null || rows <= fewRows, out }
    const recent = own === null ? { lead: leadOf(ordered), group: recentGroup } : {}
    await writePoints(session, job, dating, { source, ...how, ...recent })
    const named = own === null ? '' : `${quote(own.metric)} AS metric, ${quote(own.interval)} AS "interval", `
    const shares = await readShares(session, `(SELECT ${named}* FROM ${parquet([out])})`)
    const file = describe(shares)
    if (file.rows !== rows) throw new Error(`${out} holds ${file.rows} rows instead of ${rows}`)
    return { ...file, shares: shares.map(shareOf) }
  }
  const files = new Map<number, WrittenFile>()
  const small: number[] = []
  for (const [p, part] of new Map(ordered.map((one) => [one.p, one.part]))) {
    const rows = added.get(p) ?? 0
    if (rows >= (job.portion ?? portionRows)) {
      const { shares: _, ...file } = await write([p], part.out, part)
      files.set(p, file)
    } else if (rows > 0) small.push(p)
  }
  return { files, recent: small.length === 0 ? null : await write(small, job.recent.out, null) }
}

async function isUnsorted(session: Engine): Promise<boolean> {
  const [row] = await session.rows<{ unsorted: boolean }>(statement('unsorted'))
  return row?.unsorted !== false
}

/** The results of each partition in the order of asking. */
function bodyResults(ordered: readonly Ordered[], { poison, points, tallies, holes }: Facts) {
  const results = ordered.map(({ body, p, ord }, i) => {
    const reason = poison.get(i) ?? null
    const held = points.get(i)
    const { kept: _, ...brought } = tallies.get(i) ?? emptyTally
    const state = reason !== null ? ('poison' as const) : held === undefined ? ('empty' as const) : ('ok' as const)
    return {
      part: p,
      ord,
      result: {
        request: body.request,
        series: body.series.id,
        state,
        reason,
        points: held ?? 0,
        ...brought,
        missing: holes.get(i) ?? [],
      },
    }
  })
  return results.toSorted((a, b) => a.part - b.part || a.ord - b.ord)
}

function violation(found: Contradiction, ordered: readonly Ordered[]): Violation {
  const { body, part } = bodyAt(ordered, found.body)
  return {
    series: body.series.id,
    t: found.t,
    kind: found.kind,
    stored: found.stored,
    offered: found.offered,
    stored_at: found.stored_at,
    offered_at: Number(part.observedAt),
    request: body.request,
  }
}
