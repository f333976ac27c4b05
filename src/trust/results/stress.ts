import type { Engine } from '../../lake/store/engine.ts'
import { microsOf, parseMicros } from '../../base/time.ts'
import { openAltered } from '../../query/altered-lake.ts'
import { noCause } from '../lookahead/cause.ts'
import type { LookaheadProof } from '../lookahead/lookahead.ts'
import { leakSentence } from '../lookahead/sentence.ts'
import { namedMetrics } from '../lookahead/knowledge-states.ts'
import { closing, openQuery } from '../../query/lake.ts'
import { pinnedOptions, type PinnedQuery } from './stamped-rows.ts'
import { runCancellable, type RunDeps, runScript } from '../../query/run.ts'
import {
  asLateAs,
  type Delay,
  type DelaySpec,
  delayedPoints,
  laterBy,
  type Quantile,
  type LakeVintage,
  type SeenLags,
} from './stress-delays.ts'
import { judgeLookahead } from './stress-lookahead.ts'
import { fileReadIn, parsedSql } from '../../query/parse-tree.ts'
import {
  type MetricShare,
  type StressVerdict,
  isFallen,
  longestSafeLag,
  movedShare,
  type StressRun,
  stressVerdict,
} from './stress-verdict.ts'
import { usage } from '../../base/errors.ts'
import { carry, rowsBeside } from '../../query/row-comparison.ts'
import { admit } from '../../query/gate.ts'

/** A pinned query, and the earlier versions to try. */
export interface StressSource extends PinnedQuery {
  readonly vintages: readonly LakeVintage[]
}

/** Returns how late the points of these metrics were seen to arrive. */
export type ReadLags = (metrics: readonly string[]) => Promise<readonly SeenLags[]>

/** Delays to try, and where the observed lags come from. */
export interface StressInput extends DelaySpec {
  readonly seen: ReadLags
  readonly onRun?: ((done: number) => void) | undefined
}

/** Document of `stress`: the statistic, each run, and the verdict. */
export interface Stressed extends StressVerdict {
  /** Statistic on the lake as it is; null if it is not a number. */
  readonly statistic: number | null
  /** Rows of the result. */
  readonly rows: number
  /** Each run with a delay, or at an earlier version. */
  readonly runs: readonly StressRun[]
  /** The delay under which each metric was tried alone; null if none was tried. */
  readonly delay: Pick<Delay, 'kind' | 'name'> | null
  /** Effect of that delay on each metric alone. */
  readonly metrics: readonly MetricShare[]
  /**
   * Longest added lag at which the statistic holds, to one minute or 5 %; null if it held under each lag that was
   * tried.
   */
  readonly bears_seconds: number | null
  /** Notes as sentences. */
  readonly notes: readonly string[]
}

/** Conditions of a run in addition to those of the query. */
interface Conditions {
  readonly delay?: Delay
  readonly metrics?: readonly string[]
  readonly asOf?: string
  readonly observedAsOf?: string
}

/** A run of the query and its statistic; its session stays open until it is disposed of. */
interface StatisticRun extends Disposable {
  readonly session: Engine
  /** The statistic; null if it is not a number. */
  readonly statistic: number | null
  /** Number of rows of the query. */
  readonly rows: number
}

const none = { runs: [], delay: null, metrics: [], bears_seconds: null }
/** Changes nothing, and is opened sooner than the views whole. */
const unchanged = laterBy('lag', 0)
/** Maximum number of metrics that are tried one by one. */
const mostMetrics = 24

/**
 * Runs a query again as it would have come out if points had been known later, for all of them and for one metric at a
 * time, and as it came out at earlier versions, and reports how far a statistic over its rows moves. Everything runs on
 * one thread, so that nothing else can move it; the second run changes nothing, and must return the same.
 */
export async function stress(source: StressSource, input: StressInput, run: RunDeps): Promise<Stressed> {
  const trial: Trial = { source, input, run, done: 0 }
  using base = await runUnder(trial, {})
  const baseFacts = { statistic: base.statistic, rows: base.rows }
  const undecided = (reason: string): Stressed => ({ verdict: 'undecided', reason, ...baseFacts, ...none, notes: [] })
  if (base.statistic === null) return undecided('the statistic is not a number on the lake as it is')
  const file = await fileReadIn(
    base.session,
    [source.query, input.statistic, `SELECT (${input.statistic}\n)`].join(';\n'),
  )
  if (file !== undefined) return undecided(`it reads files directly (${file}), which nothing delays; read the views`)
  const control = await compareRuns(trial, base.session, { delay: unchanged })
  if (control.changed > 0 || control.statistic !== base.statistic)
    return undecided('two runs on the same lake differ: it is not deterministic')
  const ahead = await judgeLookahead(source, input, run)
  if (ahead.verdict === 'leak') return { verdict: 'leak', reason: leakReason(ahead), ...baseFacts, ...none, notes: [] }
  const metrics = await namedMetrics(base.session, source.query)
  const { delays, notes } = await delaysOf(input, metrics)
  if (ahead.verdict === 'undecided') notes.push(`look-ahead was not judged: ${ahead.reason ?? 'no reason is known'}`)
  const runs: StressRun[] = []
  for (const delay of delays) runs.push(await runDelayed(trial, base, delay))
  for (const { version, at } of source.vintages) runs.push(await runVersion(trial, version, at))
  const worst = worstOf(runs, delays)
  const read = metrics.length > 0 ? metrics : await allMetrics(base.session)
  const shares = worst === undefined || read.length > mostMetrics ? [] : await delayEachMetric(trial, base, worst, read)
  const borne = await longestSafeLag(
    runs,
    async (seconds) => (await runDelayed(trial, base, laterBy('lag', seconds))).falls,
  )
  if (delays.length > 0 && runs.every(({ kind, changed }) => kind === 'version' || changed === 0)) notes.push(unmoved)
  if (worst !== undefined && read.length > mostMetrics)
    notes.push(`the query names no metric, and there are ${read.length}: none was tried alone`)
  return {
    ...stressVerdict(runs, base.statistic, borne, shares),
    ...baseFacts,
    runs,
    delay: shares.length > 0 && worst !== undefined ? { kind: worst.kind, name: worst.name } : null,
    metrics: shares,
    bears_seconds: borne,
    notes,
  }
}

/** Explains why a query that looks ahead is no strategy, with the row that shows it. */
function leakReason({ reason, differences: [difference] }: LookaheadProof): string {
  const shown = difference === undefined ? '' : `: ${leakSentence(difference)}`
  return `the query looks ahead, ${reason ?? noCause}${shown}`
}

const unmoved =
  'no delay changes a row: the query decides later than these after its points are known, or does not ask when ' +
  'they were (pitlake lookahead tells)'

/** State that the runs share. */
interface Trial {
  readonly source: StressSource
  readonly input: StressInput
  readonly run: RunDeps
  done: number
}

/**
 * Lists the delays, shortest first; quantiles only if an arrival is known, for otherwise they would promise what was
 * not observed.
 */
async function delaysOf({ lags, latencies, seen }: StressInput, metrics: readonly string[]) {
  const quantiles = lags.filter((lag) => typeof lag !== 'number')
  const seenLags = quantiles.length === 0 ? [] : await seen(metrics)
  const silent = seenLags.filter(({ max }) => max === null)
  const isHeard = seenLags.length > silent.length
  const notes = silent.length === 0 ? [] : [unseenLagsNote(silent, isHeard, quantiles)]
  const audited = isHeard ? quantiles.map((quantile) => asLateAs(quantile, seenLags)) : []
  const ascending = (all: readonly number[]): number[] =>
    [...new Set(all)].filter((s) => s > 0).toSorted((a, b) => a - b)
  return {
    delays: [
      ...audited,
      ...ascending(lags.filter((lag) => typeof lag === 'number')).map((seconds) => laterBy('lag', seconds)),
      ...ascending(latencies).map((seconds) => laterBy('latency', seconds)),
    ],
    notes,
  }
}

function unseenLagsNote(silent: readonly SeenLags[], heard: boolean, wanted: readonly Quantile[]): string {
  const names = silent.map(({ metric, interval }) => `${metric} ${interval}`)
  const some = names.length > 4 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ')
  return (
    `no arrival is known of ${some}: ${heard ? 'they stay' : 'all stays'} as the rule says under ` + wanted.join(', ')
  )
}

async function allMetrics(session: Engine): Promise<string[]> {
  const rows = await session.rows<{ metric: string }>('SELECT DISTINCT metric FROM points ORDER BY 1')
  return rows.map(({ metric }) => metric)
}

/**
 * Runs the query and its statistic under conditions; what its script makes lives and ends with the session, which is
 * open.
 */
async function runUnder(trial: Trial, { delay, metrics, asOf, observedAsOf }: Conditions): Promise<StatisticRun> {
  const { source, input, run } = trial
  const clocks = {
    ...(asOf !== undefined && { as_of: asOf }),
    ...(observedAsOf !== undefined && { observed_as_of: observedAsOf }),
  }
  const { root, query } = source
  const options = pinnedOptions({ ...source, variables: { ...source.variables, ...clocks } })
  const session = await (delay === undefined
    ? openQuery(root, options)
    : openAltered(root, delayedPoints(delay, metrics), options))
  return closing(session, async () => {
    const rows = await keepRows(session, query, run)
    const statistic = await statisticOf(session, input.statistic, run)
    trial.done++
    input.onRun?.(trial.done)
    return { session, statistic, rows, [Symbol.dispose]: () => session.close() }
  })
}

/** Compares a run under conditions with another one. */
async function compareRuns(
  trial: Trial,
  base: Engine,
  conditions: Conditions,
): Promise<Pick<StressRun, 'statistic' | 'rows' | 'changed'>> {
  using ran = await runUnder(trial, conditions)
  const { statistic, rows } = ran
  await carry(base, `FROM ${resultTable}`, ran.session, other)
  // How many rows of either run the other does not have, whichever are more.
  const beside = (await rowsBeside(ran.session, resultTable, other)) ?? [Infinity]
  return { statistic, rows, changed: Math.max(...beside) }
}

/** Runs under conditions and returns the comparison with another run. */
async function runAndCompare(
  trial: Trial,
  { session, statistic: before }: StatisticRun,
  conditions: Conditions,
  about: Pick<StressRun, 'kind' | 'name' | 'seconds' | 'at'>,
): Promise<StressRun> {
  const { statistic, ...other } = await compareRuns(trial, session, conditions)
  const falls = isFallen(statistic, before, trial.input.within)
  return { ...about, ...other, statistic, before, moved: movedShare(statistic, before), falls }
}

async function runDelayed(trial: Trial, base: StatisticRun, delay: Delay): Promise<StressRun> {
  const { kind, name, seconds, floors } = delay
  return await runAndCompare(
    trial,
    base,
    { delay },
    { kind, name, seconds: floors.length > 0 ? null : seconds, at: null },
  )
}

/** Runs on an earlier version, and compares with the statistic that the lake gives today for the same time. */
async function runVersion(trial: Trial, version: number, at: string): Promise<StressRun> {
  const { as_of: ownLimit } = trial.source.variables
  const asOf = typeof ownLimit === 'string' && (parseMicros(ownLimit) ?? Infinity) < microsOf(at) ? ownLimit : at
  using now = await runUnder(trial, { asOf, delay: unchanged })
  const conditions = { asOf, observedAsOf: at, delay: unchanged }
  return await runAndCompare(trial, now, conditions, { kind: 'version', name: String(version), seconds: null, at })
}

/**
 * Chooses the delay to look into: the first under which the statistic falls, else the one that moves it most; undefined
 * if none does.
 */
function worstOf(runs: readonly StressRun[], delays: readonly Delay[]): Delay | undefined {
  const far = ({ statistic, before }: StressRun): number => Math.abs((statistic ?? 0) - (before ?? 0))
  const moving = delays
    .map((delay, i) => ({ delay, run: runs[i] }))
    .filter(({ run }) => run !== undefined && far(run) > 0)
  const fallen = moving.find(({ run }) => run?.falls)
  return (fallen ?? moving.toSorted((a, b) => far(b.run as StressRun) - far(a.run as StressRun))[0])?.delay
}

/** Delays each metric alone. */
async function delayEachMetric(
  trial: Trial,
  base: StatisticRun,
  delay: Delay,
  metrics: readonly string[],
): Promise<MetricShare[]> {
  const tried: { metric: string; statistic: number | null; far: number }[] = []
  for (const metric of metrics) {
    const { statistic } = await compareRuns(trial, base.session, { delay, metrics: [metric] })
    tried.push({ metric, statistic, far: Math.abs((statistic ?? 0) - (base.statistic ?? 0)) })
  }
  const all = tried.reduce((sum, { far }) => sum + far, 0)
  return tried
    .map(({ metric, statistic, far }) => ({
      metric,
      statistic,
      moved: movedShare(statistic, base.statistic),
      share: all === 0 ? 0 : far / all,
    }))
    .toSorted((a, b) => b.share - a.share)
}

/** Table that a statistic reads, and the one with the rows of another run. */
const resultTable = 'result'
const other = 'result_before'

/** Keeps the rows of a script's last statement for statistics; returns their number. */
async function keepRows(session: Engine, script: string, run: RunDeps): Promise<number> {
  const ready = await runScript(session, script, run)
  if (ready.kind !== 'SELECT') throw usage('SQL', { expected: 'a query, which gives rows', got: ready.kind })
  await runCancellable(session, ready.text, run, async () =>
    session.run(`CREATE OR REPLACE TEMP TABLE ${resultTable} AS ${ready.text}`),
  )
  const [row] = await session.rows<{ n: bigint }>(`SELECT count(*) AS n FROM ${resultTable}`)
  return Number(row?.n)
}

/**
 * Computes the statistic over the kept rows: a SELECT of one number, or an expression over them. Null if it is no
 * finite number.
 */
async function statisticOf(session: Engine, statistic: string, run: RunDeps): Promise<number | null> {
  const tree = await parsedSql(session, statistic)
  const sql = 'error' in tree && tree.error === 'parser' ? `SELECT ${statistic}\nFROM ${resultTable}` : statistic
  const { text, kind, columns } = await runCancellable(session, sql, run, async () => admit(session, sql))
  const [column] = columns
  if (kind !== 'SELECT' || column === undefined || columns.length > 1)
    throw usage('--statistic', {
      expected: 'SQL of one number',
      got: `${kind} of ${columns.length} columns`,
      next: 'such as avg(v), or SELECT avg(v) FROM result',
    })
  const rows = await runCancellable(session, sql, run, async () =>
    session.rows<{ statistic: number | null }>(
      `SELECT CAST(statistic AS DOUBLE) AS statistic FROM (${text}\n) AS told (statistic) LIMIT 2`,
    ),
  )
  if (rows.length !== 1)
    throw usage('--statistic', { expected: 'SQL of one number', got: rows.length === 0 ? 'no row' : 'several rows' })
  const value = rows[0]?.statistic ?? null
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
