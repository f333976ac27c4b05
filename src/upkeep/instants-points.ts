import { columnsOf, parquet } from '../store/parquet.ts'
import type { Engine } from '../store/engine.ts'
import type { FileEntry } from '../ledger/entry.ts'
import type { Micros } from '../time.ts'
import { inLake } from '../store/layout.ts'
import { writeChangedPoints } from './changed-rows.ts'
import { inSession, type MergedFile, orderOf } from './merge.ts'

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
  return await inSession(engine, [job.out], async (session) => {
    const source = parquet([inLake(job.root, job.file.path)])
    const [ahead] = await session.rows(`SELECT count(*) AS n FROM ${source} WHERE epoch_us(observed_at) > ${job.now}`)
    if (Number(ahead?.['n']) === 0) return null
    const columns = await columnsOf(session, source)
    const instant = `make_timestamptz(${job.observedAt}::BIGINT)`
    const mended = `(SELECT * REPLACE (
      CASE WHEN epoch_us(observed_at) > ${job.now} THEN ${instant} ELSE observed_at END AS observed_at,
      CASE WHEN basis = 'observed' AND epoch_us(available_at) > ${job.now} THEN ${instant} ELSE available_at END AS available_at)
      FROM ${source})`
    const rows = { source: mended, order: orderOf('points', columns) }
    return await writeChangedPoints(session, { ...job, files: [job.file], source, columns, rows, changing: instants })
  })
}
