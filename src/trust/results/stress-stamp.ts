import type { Ledger } from '../../lake/ledger/ledger.ts'
import { quote } from '../../lake/store/engine.ts'
import type { RunDeps } from '../../query/run.ts'
import type { SeenLags, StressAgain } from './stress-delays.ts'
import type { PinnedQuery } from './stamped-rows.ts'
import { stress, type Stressed, type StressInput, type StressSource } from './stress.ts'
import { formatMicros, parseMicros } from '../../base/time.ts'
import { storedVersions } from '../../lake/ledger/index-queries.ts'

/** A stress that is to be stamped. */
export interface StressRequest extends StressInput {
  /** Number of earlier versions to try. */
  readonly vintages: number
}

/** A statistic that was tried under stress. */
export interface StatisticTrial {
  readonly outcome: Stressed
  /** SELECT of the outcome's rows. */
  readonly rows: string
  /** Everything that is needed to try it once more. */
  readonly again: StressAgain
}

/** Tests a statistic over a pinned version: the outcome, its rows as SQL, and what is needed to test it once more. */
export async function tryStatistic(
  ledger: Ledger,
  pinned: PinnedQuery,
  { vintages, ...input }: StressRequest,
  run: RunDeps,
): Promise<StatisticTrial> {
  const source = withVintages(ledger, pinned, vintages)
  let reportedLags: readonly SeenLags[] = []
  const seen = async (metrics: readonly string[]): Promise<readonly SeenLags[]> =>
    (reportedLags = await input.seen(metrics))
  const outcome = await stress(source, { ...input, seen }, run)
  const { statistic, lags, latencies, within, ts, labels } = input
  return {
    outcome,
    rows: rowsSql(outcome),
    again: { statistic, lags, latencies, within, ts, labels, seen: reportedLags, vintages: source.vintages },
  }
}

/** Builds the SQL of the rows of a stamped outcome, tried once more. */
export async function tryStatisticAgain(
  source: PinnedQuery,
  { seen, vintages, ...input }: StressAgain,
  run: RunDeps,
): Promise<string> {
  return rowsSql(
    await stress({ ...source, vintages }, { ...input, seen: async () => await Promise.resolve(seen) }, run),
  )
}

const types = {
  kind: 'VARCHAR',
  name: 'VARCHAR',
  rows: 'BIGINT',
  changed: 'BIGINT',
  statistic: 'DOUBLE',
  moved: 'DOUBLE',
  falls: 'BOOLEAN',
  share: 'DOUBLE',
} as const

/** A row of a stamped outcome. Derived, so that `types` is the one list of its columns. */
type StampedRun = Readonly<Partial<Record<keyof typeof types, string | number | boolean | null>>>

/**
 * Builds the SQL of an outcome as rows: the lake as it is, each run, each metric alone, and the verdict, in this order.
 */
function rowsSql({ verdict, statistic, rows, runs, metrics, bears_seconds: borne }: Stressed): string {
  const stampedRuns: StampedRun[] = [
    { kind: 'as it is', rows, statistic },
    ...runs,
    ...metrics.map(({ metric: name, ...share }) => ({ kind: 'metric', name, ...share })),
    { kind: 'bears', name: 'seconds', statistic: borne },
    { kind: 'verdict', name: verdict },
  ]
  const cell = (value: StampedRun[keyof StampedRun], type: string): string =>
    `CAST(${value === null || value === undefined ? 'NULL' : quote(String(value))} AS ${type})`
  const lines = stampedRuns.map((stampedRun, place) => {
    const cells = Object.entries(types).map(([name, type]) => cell(stampedRun[name as keyof StampedRun], type))
    return `(${[place, ...cells].join(', ')})`
  })
  const names = Object.keys(types).join(', ')
  return `SELECT ${names} FROM (VALUES ${lines.join(',\n ')}) AS told (place, ${names}) ORDER BY place`
}

/**
 * Selects earlier versions to try with a pinned query: those before this one, and before the limit of what the query
 * sees, that added something (merges and redatings remove files), evenly among them, the last included.
 */
export function withVintages(ledger: Ledger, source: PinnedQuery, vintageCount: number): StressSource {
  const { observed_as_of: observedAsOf } = source.variables
  const until = (typeof observedAsOf === 'string' ? parseMicros(observedAsOf) : undefined) ?? Infinity
  const arrivals = storedVersions(ledger).filter(
    (version) =>
      version.version < source.version &&
      version.files_added > 0 &&
      version.files_removed === 0 &&
      version.committed_at < until,
  )
  const count = Math.min(vintageCount, arrivals.length)
  const some = Array.from({ length: count }, (_, i) => arrivals[Math.floor(((i + 1) * arrivals.length) / count) - 1])
  const vintages = some.flatMap((version) =>
    version === undefined ? [] : [{ version: version.version, at: formatMicros(version.committed_at) }],
  )
  return { ...source, vintages }
}
