import { columnsOf, parquet } from '../store/parquet.ts'
import { backfillAfter, type Rule } from '../catalog/availability.ts'
import { availableSql, basisSql, floorSql, trustedSql } from '../catalog/availability-sql.ts'
import type { Interval } from '../time.ts'
import type { Engine } from '../store/engine.ts'
import type { FileEntry } from '../ledger/entry.ts'
import { inLake } from '../store/layout.ts'
import { writeChangedPoints } from './changed-rows.ts'
import { inSession, type MergedFile, orderOf } from './merge.ts'
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
  return await inSession(engine, [job.out], async (session) => {
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
    const dated = `(SELECT * EXCLUDE (new_at, new_basis, new_rule_at, new_computed)
      REPLACE (new_at AS available_at, new_basis AS basis, new_rule_at AS available_rule_at, new_computed AS computed_at)
      FROM dated)`
    // An instant that is said once only, for it is the date, stays what the provider told.
    const kept = (from: string): string => `(SELECT * REPLACE (${computedSql()} AS computed_at) FROM ${from})`
    const rows = { source: dated, order: orderOf('points', columns) }
    return {
      changed,
      file: await writeChangedPoints(session, { ...job, source, columns, rows, changing: dates, kept }),
    }
  })
}
