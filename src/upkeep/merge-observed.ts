import { rm } from 'node:fs/promises'
import type { Engine } from '../store/engine.ts'
import type { FileEntry } from '../ledger/entry.ts'
import type { Micros } from '../time.ts'
import { inLake } from '../store/layout.ts'
import { columnsOf, digestOf, type MergedFile, noRoom, orderOf, parquet, prove, rangeOf } from './merge.ts'
import { encodingText, measuredEncoding, usualEncoding, writeParquet } from './encode.ts'

/** A points file some of whose points were seen at an instant that has not come yet. */
export interface ObservedJob {
  readonly root: string
  readonly file: FileEntry
  /** What is later than this never was. */
  readonly now: Micros
  /** What stands in its place: the instant of the mending commit. */
  readonly observedAt: Micros
  readonly out: string
  readonly metadata: Readonly<Record<string, string>>
}

/** The instants that may be wrong: when a point was seen, and what is known by that alone. */
const instants = new Set(['observed_at', 'available_at'])

/** Writes the file with true instants; null where no point of it was seen in the future. */
export async function reobserveFile(engine: Engine, job: ObservedJob): Promise<MergedFile | null> {
  using session = await engine.session()
  try {
    return await reobserve(session, job)
  } catch (error) {
    await rm(job.out, { force: true })
    throw noRoom(error) ?? error
  }
}

async function reobserve(session: Engine, job: ObservedJob): Promise<MergedFile | null> {
  const source = parquet([inLake(job.root, job.file.path)])
  const [ahead] = await session.rows(`SELECT count(*) AS n FROM ${source} WHERE epoch_us(observed_at) > ${job.now}`)
  if (Number(ahead?.['n']) === 0) return null
  const columns = await columnsOf(session, source)
  const before = await prove(session, source, columns, 'points')
  const instant = `make_timestamptz(${job.observedAt}::BIGINT)`
  const mended = `(SELECT * REPLACE (
    CASE WHEN epoch_us(observed_at) > ${job.now} THEN ${instant} ELSE observed_at END AS observed_at,
    CASE WHEN basis = 'observed' AND epoch_us(available_at) > ${job.now} THEN ${instant} ELSE available_at END AS available_at)
    FROM ${source})`
  const known = before.minusZero ? undefined : measuredEncoding(job.file)
  const encoding = known ?? usualEncoding(before.minusZero, before.rows)
  await writeParquet(session, { source: mended, order: orderOf('points', columns) }, job.out, encoding, job.metadata)
  const written = parquet([job.out])
  const after = await prove(session, written, columns, 'points')
  const kept = digestOf(columns.filter(({ name }) => !instants.has(name)))
  const digests: unknown[] = []
  for (const from of [source, written]) {
    const [row] = await session.rows(`SELECT ${kept} AS digest FROM ${from}`)
    digests.push(row?.['digest'])
  }
  if (after.rows !== before.rows || digests[0] !== digests[1])
    throw new Error(`mending ${job.file.path} would change more than instants`)
  const range = await rangeOf(session, written, [job.file])
  if (!range) throw new RangeError('only points are mended')
  const { min_t, max_t, ...meta } = range
  const encoded = { encoding: known ? encodingText(known) : null }
  return { rows: after.rows, digest: after.digest, min_t, max_t, meta: { ...meta, ...encoded } }
}
