import { rm } from 'node:fs/promises'
import { backfillAfter, type Rule } from '../catalog/availability.ts'
import { availableSql, basisSql, floorSql, trustedSql } from '../catalog/availability-sql.ts'
import type { Interval } from '../time.ts'
import type { Engine } from '../store/engine.ts'
import type { FileEntry } from '../ledger/entry.ts'
import { inLake } from '../store/layout.ts'
import { columnsOf, digestOf, type MergedFile, noRoom, orderOf, parquet, prove, rangeOf } from './merge.ts'
import { encodingText, measuredEncoding, usualEncoding, writeParquet } from './encode.ts'
import { statement } from './sql.ts'
import { computedSql, ruledSql } from '../points/stored-clocks.ts'

/** A partition whose points are to be dated by other rules. */
export interface RedateJob {
  readonly root: string
  readonly interval: Interval
  readonly rules: readonly Rule[]
  /** The live points files of the partition. */
  readonly files: readonly FileEntry[]
  readonly out: string
  readonly metadata: Readonly<Record<string, string>>
}

/** The partition written anew, and how many of its points got another date. */
export interface Redated {
  readonly file: MergedFile
  readonly changed: number
}

const dates = new Set(['available_at', 'basis', 'available_rule_at'])

/** Dates a partition by other rules and writes it into one file; null when every point has that date already. */
export async function redateFiles(engine: Engine, job: RedateJob): Promise<Redated | null> {
  using session = await engine.session()
  try {
    return await redate(session, job)
  } catch (error) {
    await rm(job.out, { force: true })
    throw noRoom(error) ?? error
  }
}

async function redate(session: Engine, job: RedateJob): Promise<Redated | null> {
  const { rules, interval } = job
  const source = parquet(job.files.map((file) => inLake(job.root, file.path)))
  await session.run(
    statement('redated', {
      source,
      available: availableSql(rules, 'mark', interval),
      floor: floorSql(rules, 'mark', interval),
      basis: basisSql(rules, 'mark'),
      computed: computedSql(),
      trusted: trustedSql(rules, 'mark'),
      backfill: backfillAfter(interval) * 1_000_000,
    }),
  )
  const [row] = await session.rows(statement('changed', { ruled: ruledSql() }))
  const changed = Number(row?.['rows'])
  if (changed === 0) return null
  const columns = await columnsOf(session, source)
  const before = await prove(session, source, columns, 'points')
  const dated = `(SELECT * EXCLUDE (new_at, new_basis, new_rule_at, new_computed)
    REPLACE (new_at AS available_at, new_basis AS basis, new_rule_at AS available_rule_at, new_computed AS computed_at)
    FROM dated)`
  const largest = job.files.toSorted((a, b) => b.rows - a.rows)[0]
  const known = largest && !before.minusZero ? measuredEncoding(largest) : undefined
  const encoding = known ?? usualEncoding(before.minusZero, before.rows)
  const { digest } = await prove(session, dated, columns, 'points')
  const metadata = { ...job.metadata, pitlake_digest: digest }
  await writeParquet(session, { source: dated, order: orderOf('points', columns) }, job.out, encoding, metadata)
  const written = parquet([job.out])
  const after = await prove(session, written, columns, 'points')
  const kept = digestOf(columns.filter(({ name }) => !dates.has(name)))
  const told = (from: string): string => `(SELECT * REPLACE (${computedSql()} AS computed_at) FROM ${from})`
  const digests = await Promise.all([source, written].map(async (from) => await scalar(session, kept, told(from))))
  if (after.rows !== before.rows || after.digest !== digest || digests[0] !== digests[1])
    throw new Error(`redating ${job.files[0]?.metric} would change more than dates`)
  const range = await rangeOf(session, written, job.files)
  if (!range) throw new RangeError('only points are redated')
  const { min_t, max_t, ...meta } = range
  const encoded = { encoding: known ? encodingText(known) : null }
  return { changed, file: { rows: after.rows, digest: after.digest, min_t, max_t, meta: { ...meta, ...encoded } } }
}

async function scalar(session: Engine, expression: string, source: string): Promise<string> {
  const [row] = await session.rows<{ digest: string }>(`SELECT ${expression} AS digest FROM ${source}`)
  return row?.digest ?? ''
}
