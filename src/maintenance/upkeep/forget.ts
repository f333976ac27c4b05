import { Engine, quote } from '../../lake/store/engine.ts'
import { type Identity, identityColumns } from '../../lake/store/parquet.ts'
import { type CommitDeps, type Draft, commit } from '../../lake/ledger/commit.ts'
import { type DamagedFile, isForgettable } from './findings.ts'
import { isPlain, lostReason } from '../../lake/ledger/coverage.ts'
import { seriesNumber } from '../../lake/ledger/apply.ts'
import { storedMonths, type MonthDigest, type Months, monthsBetween } from '../../lake/ledger/month-digests.ts'
import { withMonths } from '../../sources/points/month-changes.ts'
import { monthSums } from '../../sources/points/month-sums.ts'
import { type CoverageRow, type Forgotten, type Json, type Progress, seriesFields } from '../../lake/ledger/entry.ts'
import {
  loadCoverage,
  type StoredFile,
  storedSeries,
  type StoredSeries,
  liveFiles,
  storedInterval,
} from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Partition, partitionSql, partitionsOf } from '../../sources/points/files.ts'
import { endSql, micros } from '../../base/intervals-sql.ts'
import { end, floor, type Interval, parseInstant, step } from '../../base/time.ts'
import { intersect, minus, type Window } from '../../base/windows.ts'
import { identityOf } from '../../sources/points/conversion-types.ts'
import { text, orNull, count, real } from '../../base/value-checks.ts'
import { rowsAs } from '../../lake/ledger/index-rows.ts'

/** Loss of a series with a file. */
interface LossWithMonths {
  readonly series: string
  readonly points: number
  /** Half-open, in seconds. */
  readonly windows: readonly Window[]
  /** Digests of the months of the series that are left, and those before as far as they were counted. */
  readonly months: { readonly left: Months; readonly held: Months }
}

/** Loss of a series. */
export interface SeriesLoss {
  /** Id of the series. */
  readonly series: string
  /** Number of lost points. */
  readonly points: number
  /** Windows that will be requested again, half-open, seconds. */
  readonly windows: readonly Window[]
}

/** Damaged files that were removed from a lake. */
export interface ForgottenFiles {
  /** Version without them. */
  readonly version: number
  /** Paths, relative to the lake. */
  readonly files: readonly string[]
  /** Number of lost points. */
  readonly points: number
  /** Lost points by series. */
  readonly series: readonly SeriesLoss[]
}

/**
 * Removes damaged files from the lake in one commit that records the loss: their points are subtracted, and the windows
 * that only they covered are failed, so that the next fetch requests them again.
 */
export async function forgetLost(
  ledger: Ledger,
  damaged: readonly DamagedFile[],
  deps: CommitDeps,
): Promise<ForgottenFiles> {
  const lostFiles = damaged.filter(({ file }) => isForgettable(file) || file.removed_version !== null)
  const paths = lostFiles.map(({ file }) => file.path)
  const { provider } = ledger.head()
  if (paths.length === 0 || provider === null)
    return { version: ledger.head().version, files: [], points: 0, series: [] }
  let parts: LossWithMonths[] = []
  const version = await commit(
    ledger,
    async (ticket) => {
      const points = lostFiles
        .map(({ file }) => file)
        .filter((file) => file.table === 'points' && file.removed_version === null)
      using engine = await Engine.open()
      parts = []
      for (const partition of partitionsOf(points).values())
        parts.push(...(await lostOf(ledger, engine, new Set(paths), partition)))
      const live = lostFiles.filter(({ file }) => file.removed_version === null).map(({ file }) => file.path)
      const draft: Draft = {
        job: 'doctor',
        run: `doctor-${ticket.version}`,
        provider,
        remove: live,
        drop: paths,
        progress: await withMonths(ledger, engine, progressOf(ledger, parts), { add: [], remove: live }),
        forgotten: parts.flatMap((part) => forgottenOf(part, storedSeries(ledger, [part.series]).get(part.series))),
        coverage: coverageOf(parts, Math.floor(ticket.committed_at / 1_000_000)),
        further: {
          lost: lostFiles.map(({ file, damage }): Json => ({ path: file.path, found: damage.kind, rows: file.rows })),
        },
      }
      return draft
    },
    deps,
  )
  const points = parts.reduce((sum, part) => sum + part.points, 0)
  return { version: version.version, files: paths, points, series: parts.map(({ months: _months, ...part }) => part) }
}

/**
 * Computes the loss from what is left: points that the journal counted and no remaining file has are lost, however its
 * file came about.
 */
async function lostOf(
  ledger: Ledger,
  engine: Engine,
  lostPaths: ReadonlySet<string>,
  { metric, interval }: Partition<StoredFile>,
): Promise<LossWithMonths[]> {
  const rest = liveFiles(ledger, { table: 'points' }).filter((file) => !lostPaths.has(file.path))
  const keptPartition = partitionsOf(rest).get(`${metric} ${interval}`)
  const remaining =
    keptPartition === undefined
      ? new Map<string, Remnant>()
      : await islands(engine, interval, partitionSql(ledger.root, keptPartition))
  const partitionSeries = [...storedSeries(ledger).values()].filter(
    (series) => series.metric === metric && storedInterval(series) === interval,
  )
  const source =
    keptPartition &&
    `(SELECT ${quote(metric)} AS metric, ${quote(interval)} AS "interval", * FROM ` +
      `${partitionSql(ledger.root, keptPartition)})`
  const sums = new Map(
    (source === undefined ? [] : await monthSums(engine, source)).map((sums) => [keyOf(sums), sums.months]),
  )
  const coverage = loadCoverage(
    ledger,
    partitionSeries.map((series) => series.id),
  )
  return partitionSeries.flatMap((series): LossWithMonths[] => {
    const remnant = remaining.get(keyOf(identityOf(series))) ?? { points: 0, windows: [] }
    const points = series.points - remnant.points
    if (points <= 0) return []
    const covered = (coverage.get(series.id) ?? []).filter(isPlain)
    const months = {
      left: sums.get(keyOf(identityOf(series))) ?? new Map<string, never>(),
      held: storedMonths(ledger, seriesNumber(ledger, series.id) ?? 0),
    }
    return [{ series: series.id, points, windows: minus(covered, remnant.windows), months }]
  })
}

/** Points of a series in the remaining files, and the windows that they fill. */
interface Remnant {
  readonly points: number
  readonly windows: Window[]
}

const { asset, currency, exchange, network } = seriesFields
const islandFields = {
  asset,
  currency,
  exchange,
  network,
  params: orNull(text),
  first: real,
  last: real,
  points: count,
}

/** Finds the stored runs of every series: from their first point to the end of their last one. */
async function islands(engine: Engine, interval: Interval, source: string): Promise<Map<string, Remnant>> {
  const remnants = new Map<string, Remnant>()
  const rows = await rowsAs(
    engine,
    islandFields,
    `WITH point AS (
       SELECT asset, currency, exchange, network, params, t,
         make_timestamptz(${endSql('epoch_us(lag(t) OVER w)', interval, micros)}) AS expected
       FROM ${source}
       WINDOW w AS (PARTITION BY asset, currency, exchange, network, params ORDER BY t)
     ), island AS (
       SELECT *, count(*) FILTER (WHERE expected <> t)
         OVER (PARTITION BY asset, currency, exchange, network, params ORDER BY t) AS n FROM point
     )
     SELECT asset, currency, exchange, network, params, epoch(min(t))::DOUBLE AS first, epoch(max(t))::DOUBLE AS last,
       count(*) AS points
     FROM island GROUP BY asset, currency, exchange, network, params, n ORDER BY first`,
  )
  for (const row of rows) {
    const before = remnants.get(keyOf(row)) ?? { points: 0, windows: [] }
    before.windows.push({ since: row.first, until: end(row.last, interval) })
    remnants.set(keyOf(row), { points: before.points + row.points, windows: before.windows })
  }
  return remnants
}

const keyOf = (identity: Identity): string => JSON.stringify(identityColumns.map((name) => identity[name]))

function progressOf(ledger: Ledger, parts: readonly LossWithMonths[]): Progress[] {
  const seriesById = storedSeries(ledger)
  return parts.flatMap(({ series, points, windows }) => {
    const storedRow = seriesById.get(series)
    const first = windows[0]?.since ?? storedRow?.first_t
    const last = windows.at(-1)?.until
    if (!storedRow || first === undefined || first === null) return []
    const last_t = last === undefined ? (storedRow.last_t ?? first) : step(last, storedInterval(storedRow), -1)
    return [{ series, points: -points, first_t: first, last_t }]
  })
}

/**
 * Computes the loss of each month. The digests give it if they count every point that the series had; else only the
 * months with missing points are known.
 */
function forgottenOf({ series, windows, months }: LossWithMonths, storedSeries: StoredSeries | undefined): Forgotten[] {
  const counted = [...months.held.values()].reduce((sum, { points }) => sum + points, 0) === storedSeries?.points
  const lostMonths = counted ? monthsBetween(months.left, months.held) : new Map<string, MonthDigest>()
  const names = counted ? [...lostMonths.keys()] : monthsOf(windows)
  return names.map((month) => {
    const begin = parseInstant(`${month}-01`) ?? 0
    const monthWindow = { since: begin, until: step(begin, '1month', 1) }
    const parts = intersect([monthWindow], windows)
    const { points = null, digest = null } = lostMonths.get(month) ?? {}
    return {
      series,
      month,
      since: parts[0]?.since ?? monthWindow.since,
      until: parts.at(-1)?.until ?? monthWindow.until,
      points,
      digest,
    }
  })
}

function monthsOf(windows: readonly Window[]): string[] {
  const names = new Set<string>()
  for (const { since, until } of windows)
    for (let at = floor(since, '1month'); at < until; at = step(at, '1month', 1))
      names.add(new Date(at * 1000).toISOString().slice(0, 7))
  return [...names]
}

function coverageOf(parts: readonly LossWithMonths[], asked_at: number): CoverageRow[] {
  return parts.flatMap(({ series, windows }) =>
    windows.map(
      ({ since, until }): CoverageRow => ({
        series,
        since,
        until,
        state: 'failed',
        reason: lostReason,
        asked_at,
        request: null,
      }),
    ),
  )
}
