import type { Catalogue } from '../../catalog/catalogue.ts'
import { commit, type StagedFile, type Ticket, type RewriteDeps } from '../../lake/ledger/commit.ts'
import { type StoredFile, liveFiles } from '../../lake/ledger/index-queries.ts'
import { type JobDeps, withLake } from '../../lake/ledger/job.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { storedRevisable } from '../../sources/points/revisable.ts'
import { rulesOf, redatedLabel } from '../../sources/points/datings.ts'
import { busy } from '../../lake/store/lock.ts'
import { computedSql, isRecent, ruledSql } from '../../sources/points/files.ts'
import { valueTypesAnew } from '../../sources/points/value-types.ts'
import type { Interval, Micros } from '../../base/time.ts'
import { dissolveRecent } from './merge-jobs.ts'
import { type Rewriting, upkeepSql, withRewriting } from './rewrite.ts'
import { providerOf } from '../../lake/ledger/provider.ts'
import { listedAs } from '../../lake/ledger/draft.ts'
import { backfillAfter } from '../../catalog/availability.ts'
import { availableSql, basisSql, floorSql, trustedSql } from '../../catalog/availability-sql.ts'
import { orderOf, rewriteFiles, rowsOf, writeChanged } from './merge-files.ts'
import { redatedMonths } from '../../sources/points/month-changes.ts'

/**
 * Dates every stored point by the rules of the catalogue, as one version. The files with the earlier dates stay in the
 * lake under the table `redated`, so that every earlier `observed_as_of` answers as before.
 */
export async function redate(root: string, catalogue: Catalogue, deps: RewriteDeps & JobDeps): Promise<RedateSummary> {
  return await withLake({ root, name: 'redate', lock: 'merge' }, deps, async ({ id, ledger, begin }) => {
    const dated: DatedPartition[] = []
    const points = (): number => dated.reduce((sum, { part }) => sum + part.redated, 0)
    await begin({ partitions: pointsParts(ledger).size }, () => ({ partitions: dated.length, points: points() }))
    for (let attempt = 0; attempt < attempts; attempt++) {
      await dissolveRecent(ledger, deps, id, 'redate')
      const value = await redateAll(ledger, catalogue, deps, { run: id, made: dated })
      if (value !== null) return { value, stopped_by: null, error: null }
    }
    throw await busy(root, 'metrics', 'this lake grows while its points get new dates')
  })
}

/**
 * Maximum attempts. A fetch may add recent points while partitions are redated: those move to their partitions too,
 * then all begins again.
 */
const attempts = 5

/** Partition that was redated. */
interface DatedPartition {
  /** Files with the earlier dates. */
  readonly inputs: readonly StoredFile[]
  /** File with the new dates; null if every point has its date already. */
  readonly staged: StagedFile | null
  readonly part: RedatedPartition
}

/** Number of points of a partition, and of those with a new date. */
export interface RedatedPartition {
  readonly metric: string
  readonly interval: Interval
  readonly points: number
  readonly redated: number
}

/** Result of redating a lake. */
export interface RedateSummary {
  /** Newest version of the lake. */
  readonly version: number
  /** Whether this run made the version; false if every point had its date already. */
  readonly made: boolean
  /** Partitions with new dates. */
  readonly partitions: readonly RedatedPartition[]
  /** Stored metrics that the catalogue does not know; their dates stay. */
  readonly unknown: readonly string[]
}

/** Dates all partitions in one version; null if recent points arrived meanwhile. */
async function redateAll(
  ledger: Ledger,
  catalogue: Catalogue,
  deps: RewriteDeps,
  { run, made }: { readonly run: string; readonly made: DatedPartition[] },
): Promise<RedateSummary | null> {
  const { version, provider } = ledger.head()
  if (!provider) return { version, made: false, partitions: [], unknown: [] }
  const unknown = new Set<string>()
  let overtaken = false
  const done = await withRewriting(ledger, deps, run, async (rewriting) => {
    let count = 0
    const dateNow = async (files: readonly StoredFile[]): Promise<DatedPartition | null> =>
      await dateOne(rewriting, catalogue, count++, files)
    const prepared = new Map<string, DatedPartition>()
    for (const [key, files] of pointsParts(ledger)) {
      const dated = await dateNow(files)
      if (dated) prepared.set(key, dated)
      else unknown.add(files[0]?.metric ?? '')
    }
    return await commit(
      ledger,
      async (ticket) => {
        overtaken = liveFiles(ledger, { table: 'points' }).some(isRecent)
        if (overtaken) return null
        // Points that were fetched or merged meanwhile are dated again: from this instant on all of a partition counts
        // as dated.
        for (const [key, files] of pointsParts(ledger)) {
          const early = prepared.get(key)
          const current = early && sameFiles(early.inputs, files) ? early : await dateNow(files)
          if (current?.staged) made.push(current)
        }
        return await draftOf(rewriting, catalogue, ticket, made)
      },
      deps,
    )
  })
  if (overtaken) return null
  const partitions = made.map(({ part }) => part)
  return { version: done.version, made: done.made, partitions, unknown: [...unknown].toSorted() }
}

async function draftOf(
  { ledger, engine, run }: Rewriting,
  catalogue: Catalogue,
  ticket: Ticket,
  dated: readonly DatedPartition[],
) {
  const earlierFiles = dated.flatMap(({ inputs }) => inputs.map((file) => asEarlier(file, ticket.committed_at)))
  const add = dated.flatMap(({ staged }) => (staged ? [staged] : []))
  const remove = dated.flatMap(({ inputs }) => inputs.map((file) => file.path))
  return {
    job: 'redate',
    run,
    provider: providerOf(ledger),
    ...(await valueTypesAnew(ledger, engine, { add, remove })),
    progress: await redatedMonths(ledger, engine, { add, remove }),
    add: [...add, ...earlierFiles],
    remove,
    rules: rulesOf(catalogue),
  }
}

/** Lists a file under the name of the table that keeps the earlier dates of its points. */
export function asEarlier(file: StoredFile, until: Micros): StagedFile {
  return listedAs(file, { table: 'redated', label: redatedLabel(until) })
}

function pointsParts(ledger: Ledger): Map<string, StoredFile[]> {
  return Map.groupBy(liveFiles(ledger, { table: 'points' }), ({ metric, interval }) => `${metric} ${interval}`)
}

function sameFiles(a: readonly StoredFile[], b: readonly StoredFile[]): boolean {
  const paths = new Set(a.map((file) => file.path))
  return a.length === b.length && b.every((file) => paths.has(file.path))
}

const dates = new Set(['available_at', 'basis', 'available_rule_at'])

/** Dates a partition by other rules and writes it into one file; null where the catalogue does not know it. */
async function dateOne(
  rewriting: Rewriting,
  catalogue: Catalogue,
  n: number,
  files: readonly StoredFile[],
): Promise<DatedPartition | null> {
  const { metric = null, interval = null } = files[0] ?? {}
  const endpoint = metric === null ? undefined : catalogue.endpoints.get(metric)
  if (!endpoint || metric === null || interval === null) return null
  const rules = endpoint.rules[interval]
  const dated_at = Math.floor(rewriting.deps.nowMicros())
  let redated = 0
  const staged = await rewriteFiles(rewriting, n, files, async ({ session, source, columns, out, ...footer }) => {
    await session.run(
      upkeepSql('redated', {
        source,
        available: availableSql(rules, 'mark', interval),
        floor: floorSql(rules, 'mark', interval),
        basis: basisSql(rules, 'mark'),
        computed_at: computedSql(),
        trusted: trustedSql(rules, 'mark'),
        backfill: backfillAfter(interval) * 1_000_000,
        // The rule does not date later vintages: a clock that it never replaced it does not replace now.
        first: storedRevisable(rewriting.ledger).includes(metric) ? ' AND available_rule_at IS NOT NULL' : '',
      }),
    )
    const [row] = await session.rows(upkeepSql('count_redated', { available_by_rule: ruledSql() }))
    redated = Number(row?.['rows'])
    if (redated === 0) return null
    const dated = `(SELECT * EXCLUDE (new_at, new_basis, new_rule_at, new_computed)
      REPLACE (new_at AS available_at, new_basis AS basis, new_rule_at AS available_rule_at,
        new_computed AS computed_at)
      FROM dated)`
    // An instant that occurs only once, as the date, stays what the provider reported.
    const withComputed = (from: string): string => `(SELECT * REPLACE (${computedSql()} AS computed_at) FROM ${from})`
    const rows = { source: dated, order: orderOf('points', columns) }
    const metadata = { ...footer.metadata, pitlake_dated: String(dated_at) }
    const file = await writeChanged(session, {
      files,
      source,
      columns,
      rows,
      changing: dates,
      kept: withComputed,
      out,
      metadata,
    })
    return { ...file, meta: { ...file.meta, dated_at } }
  })
  return { inputs: files, staged, part: { metric, interval, points: rowsOf(files), redated } }
}
