import { rowInstantSql } from '../../catalog/availability-sql.ts'
import { endSql } from '../../base/intervals-sql.ts'
import type { Regained } from '../../lake/ledger/entry.ts'
import type { Instant } from '../../base/time.ts'
import { uniformBatchSql, withBatchSql, hasRevisable } from './batch-tables.ts'
import {
  bodyAt,
  type Existing,
  type ConflictStatus,
  type Loaded,
  type Ordered,
  type Reader,
  type Tally,
} from './conversion-types.ts'
import { forgetBodies } from './read-bodies.ts'
import { firstOf, intervalSql, rowsAsNumbers, rowsSql, statement } from './sql.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { identityColumns } from '../../lake/store/parquet.ts'
import { computedSql, namedSql } from './files.ts'
import { monthSums } from './month-sums.ts'
import type { Standing } from '../../lake/ledger/differences.ts'
import type { RecordedValue } from '../../lake/ledger/lost-points.ts'

/**
 * Columns of the earlier answers of each body's series: a point that such an answer lacked was not known at that time.
 * `dated`: the last import of the series, which judges points that come with their time of availability.
 */
const priorColumns = 'body INTEGER, since BIGINT, until BIGINT, asked_at BIGINT, dated BOOLEAN'

/**
 * The result of comparing the staged points of a batch with the stored ones and each other. New points are in the
 * session's `new_points`.
 */
export interface Comparison {
  /** Whether the table `late_points` contains points that arrived late. */
  readonly late: boolean
  /** Whether a value may be -0.0. */
  readonly minusZero: boolean
  /** Counts of what each body added, by position; a body that added nothing has no entry. */
  readonly tallies: Map<number, Tally>
  readonly contradictions: Contradiction[]
  /** Stored points of revisable series that answers no longer contain. */
  readonly vanished: VanishedPoints[]
  /** State of recorded differences according to the answers, point by point. */
  readonly statuses: ConflictStatus[]
  /** Months that had lost points with a file and in which points were received again. */
  readonly regained: Regained[]
  /** Stored points that bodies lack whose absence means nothing. */
  readonly lacking: number
  /** New points of user files that are late: known only from now on. */
  readonly latePoints: number
  /** Whether `new_points` is all that was read, in the order in which it was read. */
  readonly asRead: boolean
  /** Whether, in addition, all is of one partition with one rule, requested at once. */
  readonly alike: boolean
}

/** Facts about a batch that decide how it is compared; all are known before anything runs. */
interface ComparisonPlan {
  /** The bodies that are not poisoned. */
  readonly good: readonly Good[]
  /** SQL that creates the table of the stored points. */
  readonly storedSql: string
  /** Time of the commit, microseconds. */
  readonly observedAt: bigint
  /** Reader of user files; undefined for answers of a provider. */
  readonly reader: Reader | undefined
  /** Whether a body contains one `t` twice. */
  readonly hasDoubles: boolean
  /** Whether a series may be revised. */
  readonly isRevisable: boolean
  /** Whether a series lost points with a file. */
  readonly hasLost: boolean
  /** Whether no stored point can occur in the bodies: then all offered points are new and need no table. */
  readonly isAllNew: boolean
  /** Whether the requested ranges of each series are disjoint. */
  readonly areApart: boolean
  /** Whether `new_points` is all that was read, in the order in which it was read. */
  readonly asRead: boolean
  /** Whether, in addition, all is of one partition with one rule, requested at once. */
  readonly alike: boolean
  /** Whether the bodies can contradict neither stored points nor each other. */
  readonly isUncontradicted: boolean
}

function planComparison(ordered: readonly Ordered[], loaded: Loaded): ComparisonPlan {
  const good = ordered.flatMap((job, i) => (loaded.poison.has(i) ? [] : [{ ...job, i }]))
  const staged = [...loaded.staged.values()]
  const hasDoubles = staged.some((body) => body.doubled)
  const isRevisable = hasRevisable(good)
  const hasLost = good.some(({ body }) => body.lost)
  const storedSql = storedPointsSql(good, loaded, isRevisable)
  const isAllNew = storedSql === noStoredPoints && !hasLost
  const apart = areApart(good)
  const areInside = good.every((job) => isInside(job, loaded))
  // DuckDB reads the larger side of a join in its order: that must be the points.
  const points = staged.reduce((sum, body) => sum + body.points, 0)
  const asRead = isAllNew && apart && !hasDoubles && !isRevisable && points > 10 * ordered.length
  // If no point lies outside its window, and no windows overlap, no body contains another one's points.
  const areAlone = new Set(good.map(({ rank }) => rank)).size === good.length || (apart && areInside)
  return {
    good,
    storedSql,
    observedAt: good[0]?.part.observedAt ?? 0n,
    reader: ordered[0]?.part.reader,
    hasDoubles,
    isRevisable,
    hasLost,
    isAllNew,
    areApart: apart,
    asRead,
    alike: asRead && areInside && loaded.alike === true,
    isUncontradicted: (isAllNew && areAlone) || good.every(({ part }) => part.overlap === 'off'),
  }
}

/** Compares the staged points of a batch with the stored ones and with each other. */
export async function compare(session: Engine, ordered: readonly Ordered[], loaded: Loaded): Promise<Comparison> {
  const plan = planComparison(ordered, loaded)
  const { good, observedAt, reader, isRevisable, hasLost, isUncontradicted } = plan
  await session.run(plan.storedSql)
  if (hasLost) await createLostTables(session, good)
  await createOfferedPoints(session, ordered, plan)
  if (!plan.asRead) await (reader?.unload ?? forgetBodies)(session)
  await createNewPoints(session, plan)
  await session.run(statement('known_points', { observed: `${observedAt}::BIGINT` }))
  const rewritten = isRevisable ? await rowsAsNumbers<Contradiction>(session, statement('rewritten_vintages')) : []
  const differing = isUncontradicted ? [] : await contradict(session, reader === undefined)
  const contradictions = [...rewritten, ...differing]
  const lacking = isUncontradicted || reader === undefined ? 0 : await countLacking(session)
  const statuses = isUncontradicted ? [] : await readDifferenceAnswers(session, ordered, contradictions)
  const late = await createLatePoints(session, good, { lost: hasLost, revised: isRevisable })
  const regained = hasLost ? await regain(session, ordered, observedAt, isRevisable) : []
  const latePoints = late && reader !== undefined ? await countLate(session, isRevisable) : 0
  const tallies = await tally(session, talliesSql(plan.isAllNew && plan.areApart, isRevisable))
  const vanished = isRevisable ? await rowsAsNumbers<VanishedPoints>(session, statement('vanished_vintages')) : []
  return {
    late,
    minusZero: hasLost || minusZero(loaded),
    tallies,
    contradictions,
    vanished,
    statuses,
    regained,
    lacking,
    latePoints,
    asRead: plan.asRead,
    alike: plan.alike,
  }
}

/** Creates `offered_points`, the points of the bodies with their requests and rules. */
async function createOfferedPoints(session: Engine, ordered: readonly Ordered[], plan: ComparisonPlan): Promise<void> {
  const interval = intervalSql(ordered.map(({ part }) => part.interval))
  const computed = plan.isRevisable ? ', computed' : ''
  await session.run(
    statement('offered_points', {
      kind: plan.asRead ? 'VIEW' : 'TABLE',
      close: endSql('t', interval),
      instant: rowInstantSql('t', 'close'),
      told: plan.alike
        ? uniformBatchSql(ordered)
        : `${plan.hasLost ? 'restored_points' : 'staged_points'} ${withBatchSql}`,
      distinct: plan.hasDoubles ? `DISTINCT ON (body, t${computed})` : '',
    }),
  )
}

/** Creates `new_points`: the offered points that are not stored, and the further vintages of revisable series. */
async function createNewPoints(
  session: Engine,
  { isAllNew, areApart: apart, isRevisable, observedAt }: ComparisonPlan,
): Promise<void> {
  const first = { distinct: 'DISTINCT ON (rank, t)', order: 'ORDER BY rank, t, ord' }
  await session.run(
    statement('new_points', {
      kind: isAllNew && apart && !isRevisable ? 'VIEW' : 'TABLE',
      unstored: isAllNew ? '' : 'ANTI JOIN stored_points USING (rank, t)',
      plain: isRevisable ? ' AND revisable IS NULL' : '',
      ...(apart ? { distinct: '', order: '' } : first),
    }),
  )
  if (isRevisable) await addVintages(session, observedAt)
}

/** Runs SQL that counts what each body added, by position. */
async function tally(session: Engine, sql: string): Promise<Map<number, Tally>> {
  const rows = await rowsAsNumbers<TallyRow>(session, sql)
  return new Map(
    rows.map(({ body, added_first: addedFirst, added_last: addedLast, ...rest }) => [
      body,
      { ...rest, addedFirst, addedLast },
    ]),
  )
}

function minusZero(loaded: Loaded): boolean {
  return [...loaded.staged.values()].some((body) => body.minusZero)
}

type Good = Ordered & { readonly i: number }

/** Whether all points of a body lie in the requested window. */
function isInside({ i, body }: Good, { staged }: Loaded): boolean {
  const { first, last } = staged.get(i) ?? { first: Infinity, last: -Infinity }
  return first >= (body.since ?? -Infinity) && last < (body.until ?? Infinity)
}

/** Whether the requested ranges of the bodies of a series are disjoint, so that none of their points occurs twice. */
function areApart(good: readonly Good[]): boolean {
  return good.every(({ rank, body }, i) => {
    const before = good[i - 1]
    return before?.rank !== rank || (before.body.until ?? Infinity) <= (body.since ?? -Infinity)
  })
}

const noStoredPoints =
  'CREATE TEMP TABLE stored_points (rank INTEGER, t BIGINT, v DOUBLE, o VARCHAR, digits VARCHAR, computed ' +
  'BIGINT, stored_at BIGINT, available BIGINT)'

/**
 * SQL of the stored points, from files of both levels, between the earliest and the latest time that any body was
 * requested for or contains.
 */
function storedPointsSql(good: readonly Good[], loaded: Loaded, revised: boolean): string {
  const meets = ({ from, to }: PointRange, { min_t, max_t }: Existing): boolean =>
    (min_t ?? -Infinity) <= to && (max_t ?? Infinity) >= from
  const parts = [...Map.groupBy(good, ({ part }) => part)].flatMap(([part, bodies]) => {
    const range = rangeOf(bodies, loaded)
    const { metric, interval } = part
    return part.existing.filter((file) => meets(range, file)).map(({ path }) => ({ path, metric, interval }))
  })
  const range = rangeOf(good, loaded)
  const recent = (good[0]?.part.recent.existing ?? [])
    .filter((file) => meets(range, file))
    .map(({ path }) => ({ path, metric: null, interval: null }))
  if (parts.length === 0 && recent.length === 0) return noStoredPoints
  const limits = [
    ...(Number.isFinite(range.from) ? [`e.t >= make_timestamptz(${range.from * 1_000_000}::BIGINT)`] : []),
    ...(Number.isFinite(range.to) ? [`e.t <= make_timestamptz(${range.to * 1_000_000}::BIGINT)`] : []),
  ]
  return statement('stored_points', {
    source: namedSql([...parts, ...recent], pointColumns),
    computed: computedSql('e'),
    available: revised ? ', epoch_us(e.available_at) AS available' : '',
    range: limits.length === 0 ? 'true' : limits.join(' AND '),
  })
}

const pointColumns =
  'asset, currency, exchange, network, params, t, v, o, extra, basis, available_at, computed_at, observed_at'

/** The first and the last `t` of a range, both included; infinite if it has no bound. */
interface PointRange {
  readonly from: Instant
  readonly to: Instant
}

/** Returns the range that bodies were requested for or contain. */
function rangeOf(bodies: readonly Good[], { staged }: Loaded): PointRange {
  const first = bodies.map(({ i, body }) => Math.min(body.since ?? -Infinity, staged.get(i)?.first ?? Infinity))
  const last = bodies.map(({ i, body }) => Math.max((body.until ?? Infinity) - 1, staged.get(i)?.last ?? -Infinity))
  return { from: Math.min(...first), to: Math.max(...last) }
}

async function contradict(session: Engine, whole: boolean): Promise<Contradiction[]> {
  const seconds = (column: string): string => `CAST(CAST(${column} AS DOUBLE) / 1e6 AS VARCHAR)`
  const differences = statement('differing_points', {
    stored_computed: seconds('kc'),
    offered_computed: seconds('computed'),
  })
  return [
    ...(await rowsAsNumbers<Contradiction>(session, differences)),
    ...(whole ? await rowsAsNumbers<Contradiction>(session, statement('vanished_points')) : []),
  ]
}

/** Counts the stored points that bodies of user files lack; their absence from a file changes nothing. */
async function countLacking(session: Engine): Promise<number> {
  const sql = `SELECT count(DISTINCT (body, t)) AS lacking FROM (${statement('vanished_points')})`
  const [row] = await rowsAsNumbers<{ lacking: number }>(session, sql)
  return row?.lacking ?? 0
}

const always = 1_000_000_000_000

/** Creates the table `late_points` if points may have arrived late; returns whether they may. */
async function createLatePoints(
  session: Engine,
  good: readonly Good[],
  { lost, revised }: Record<'lost' | 'revised', boolean>,
) {
  const series = Map.groupBy(good, ({ rank }) => rank)
  const priors = good.flatMap((job) => priorRows(job, series.get(job.rank) ?? []))
  if (priors.length === 0 && !lost && !revised) return false
  await session.run(`CREATE TEMP TABLE prior_answers (${priorColumns})`)
  if (priors.length > 0) await session.run(`INSERT INTO prior_answers ${rowsSql(priorColumns, priors)}`)
  await session.run(statement('late_points'))
  if (revised) await session.run(statement('late_vintages'))
  return true
}

/**
 * Counts the points that are known only from now on because an earlier answer lacked them, without further vintages.
 */
async function countLate(session: Engine, revised: boolean): Promise<number> {
  const first = revised ? ' SEMI JOIN (FROM new_points WHERE NOT vintage) USING (body, t)' : ''
  const sql = `SELECT count(*) AS points FROM late_points${first} WHERE tardy AND stood IS NULL`
  const [row] = await rowsAsNumbers<{ points: number }>(session, sql)
  return row?.points ?? 0
}

/**
 * Lists earlier answers of the body's series: those that the job names, and those of this batch from earlier requests.
 */
function priorRows({ body, ord, i }: Good, series: readonly Good[]): object[] {
  const batch = series.filter((o) => o.ord < ord && o.body.askedAt < body.askedAt).map((o) => o.body)
  const answers = [...body.prior, ...batch].map((p) => ({
    body: i,
    since: p.since ?? -always,
    until: p.until ?? always,
    asked_at: p.askedAt,
    dated: false,
  }))
  const { lastImport } = body
  if (lastImport === undefined) return answers
  return [...answers, { body: i, since: -always, until: always, asked_at: lastImport, dated: true }]
}

interface TallyRow extends Omit<Tally, 'addedFirst' | 'addedLast'> {
  readonly body: number
  readonly added_first: Instant | null
  readonly added_last: Instant | null
}

const lostMonthColumns = 'rank INTEGER, month VARCHAR, since BIGINT, until BIGINT'
const sightingColumns = 'rank INTEGER, since BIGINT, until BIGINT, observed BIGINT'
const answerColumns = 'rank INTEGER, since BIGINT, until BIGINT, asked_at BIGINT, observed BIGINT'
const recordedColumns = 'body INTEGER, t BIGINT, valued BOOLEAN, v DOUBLE, o VARCHAR, computed BIGINT, stored_at BIGINT'

/**
 * Creates the tables about losses of the bodies' series (`lost_months`, `first_sightings`, `earlier_answers` and
 * `recorded_values`) and the view `restored_points`.
 */
async function createLostTables(session: Engine, good: readonly Good[]): Promise<void> {
  const byRank = new Map(good.flatMap(({ rank, body }) => (body.lost ? [[rank, body.lost] as const] : [])))
  const lostMonths = [...byRank].flatMap(([rank, { months }]) =>
    months.map(({ month, since, until }) => ({ rank, month, since, until })),
  )
  const seenRows = [...byRank].flatMap(([rank, lost]) => lost.seen.map((sight) => ({ rank, ...sight })))
  const askedRows = [...byRank].flatMap(([rank, lost]) => lost.asked.map((sight) => ({ rank, ...sight })))
  const recorded = good.flatMap(({ i, body: { lost, since, until } }) =>
    (lost?.recorded ?? [])
      .filter(({ t }) => t >= (since ?? -Infinity) && t < (until ?? Infinity))
      .filter(({ t }) => lost?.months.some((month) => t >= month.since && t < month.until))
      .map((recordedValue) => ({ body: i, ...recordRow(recordedValue) })),
  )
  for (const [table, columns, rows] of [
    ['lost_months', lostMonthColumns, lostMonths],
    ['first_sightings', sightingColumns, seenRows],
    ['earlier_answers', answerColumns, askedRows],
    ['recorded_values', recordedColumns, recorded],
  ] as const) {
    await session.run(`CREATE TEMP TABLE ${table} (${columns})`)
    if (rows.length > 0) await session.run(`INSERT INTO ${table} ${rowsSql(columns, rows)}`)
  }
  await session.run(statement('restored_points'))
}

function recordRow({ t, value, computed, stored_at }: RecordedValue): object {
  const nested = value !== null && /^[{[]/.test(value)
  const number = value === null || nested || value === 'null' ? null : value
  return {
    t,
    valued: value !== null,
    v: number,
    o: nested ? value : null,
    computed: computed === null ? null : Math.round(Number(computed) * 1e6),
    stored_at,
  }
}

/**
 * Determines which points of lost months were received again, and whether they are unchanged: creates the table
 * `regained_verdicts`, and adds it to `late_points`.
 */
async function regain(
  session: Engine,
  ordered: readonly Ordered[],
  now: bigint,
  revised: boolean,
): Promise<Regained[]> {
  const was = `coalesce(r.stored_at, s.observed, ${now}::BIGINT)`
  const source = `(SELECT f.*, g.month, r.stored_at AS kept, ${was} AS was,
      EXISTS (FROM earlier_answers a WHERE a.rank = f.rank AND a.observed < ${was} AND CASE
        WHEN f.computed IS NULL THEN f.t >= a.since AND f.t < a.until AND a.asked_at > f.ruled
        ELSE list_contains([${datedBodies(ordered)}]::INTEGER[], f.body)
          AND a.asked_at * 1000000 > greatest(f.computed, f.floor * 1000000) END) AS tardy
    FROM new_points f JOIN lost_months g ON f.rank = g.rank AND f.t >= g.since AND f.t < g.until
      LEFT JOIN first_sightings s ON f.rank = s.rank AND f.t >= s.since AND f.t < s.until
      LEFT JOIN recorded_values r ON r.body = f.body AND r.t = f.t)`
  const clocks = revised
    ? {
        late: '(tardy OR (vintage AND NOT firm))',
        again: '(NOT firm AND NOT vintage AND NOT tardy)',
        first: firstOf(true),
      }
    : { late: 'tardy', again: 'false', first: '' }
  const dated = statement('dated_points', { source, seen: 'was', ...clocks })
  await session.run(
    statement('regained_points', { dated, none: identityColumns.map((name) => `NULL AS ${name}`).join(', ') }),
  )
  const lostKeys = new Set(
    ordered.flatMap(({ rank, body }) => body.lost?.months.map((month) => provenKey(rank, month)) ?? []),
  )
  const sums = (await monthSums(session, 'regained_points')).flatMap(({ metric: rank, months }) =>
    [...months].map(([month, { digest }]) => ({ rank: Number(rank), month, digest })),
  )
  const proven = sums.filter((sum) => lostKeys.has(provenKey(sum.rank, sum)))
  await session.run(statement('regained_verdicts', { proven: rowsSql('rank INTEGER, month VARCHAR', proven) }))
  await session.run('DELETE FROM late_points WHERE (body, t) IN (SELECT (body, t) FROM regained_verdicts)')
  await session.run('INSERT INTO late_points SELECT body, t, tardy, stood, again FROM regained_verdicts')
  const rows = await rowsAsNumbers<{ body: number; month: string; points: number; proven: boolean }>(
    session,
    'SELECT min(body) AS body, month, count(*) AS points, bool_and(proven) AS proven FROM regained_verdicts ' +
      'GROUP BY rank, month ORDER BY 1, 2',
  )
  return rows.map(({ body, ...rest }) => ({ series: bodyAt(ordered, body).body.series.id, ...rest }))
}

/** Lists the bodies whose points come with their time of availability and are judged by earlier imports. */
function datedBodies(ordered: readonly Ordered[]): string {
  return ordered.flatMap(({ body }, i) => (body.lastImport === undefined ? [] : [i])).join(', ')
}

const provenKey = (
  rank: number,
  { month, digest }: { readonly month: string; readonly digest: string | null },
): string => `${rank} ${month} ${digest}`

/** Stored points that a body of a revisable series lacks. */
export interface VanishedPoints {
  /** Position of the body in the batch. */
  readonly body: number
  /** The first `t`. */
  readonly t: Instant
  /** The last `t`. */
  readonly last: Instant
  readonly points: number
}

/** Adds the news of revisable series to `new_points`: first values and further vintages. */
async function addVintages(session: Engine, now: bigint): Promise<void> {
  await session.run(statement('new_vintages', { now: `${now}::BIGINT` }))
}

function talliesSql(allFresh: boolean, revised: boolean): string {
  if (allFresh && !revised) return statement('body_tallies_all_new')
  return statement('body_tallies', { vintages: revised ? 'count(*) FILTER (vintage)' : '0' })
}

/** A value of a body that contradicts the stored one. */
export interface Contradiction {
  /** Position of the body in the batch. */
  readonly body: number
  readonly t: Instant
  readonly kind: string
  /** The stored value as JSON text. */
  readonly stored: string
  /** The body's value as JSON text; null if it has none. */
  readonly offered: string | null
  /** Time at which the stored value was received, microseconds. */
  readonly stored_at: number
}

const standingColumns = 'n INTEGER, rank INTEGER, t BIGINT, until BIGINT, offered_at BIGINT'

/** Determines the state of recorded differences according to the answers, point by point. */
async function readDifferenceAnswers(
  session: Engine,
  ordered: readonly Ordered[],
  contradictions: readonly Contradiction[],
): Promise<ConflictStatus[]> {
  const ranks = new Map(ordered.map(({ rank, body }) => [rank, body.standing ?? []]))
  const all = [...ranks].flatMap(([rank, differences]) => differences.map((standing) => ({ rank, standing })))
  if (all.length === 0) return []
  const rows = all.map(({ rank, standing: { t, until = t + 1, offered_at } }, n) => {
    return { n, rank, t, until, offered_at: Math.floor(offered_at / 1_000_000) }
  })
  await session.run(`CREATE TEMP TABLE open_differences AS ${rowsSql(standingColumns, rows)}`)
  const shown = new Set(contradictions.map(({ body, ...contradiction }) => nameOf(body, contradiction)))
  const answers = await rowsAsNumbers<{ n: number; t: Instant; body: number | null }>(
    session,
    statement('difference_answers'),
  )
  return answers.flatMap(({ n, t, body }) => {
    const standing = all[n]?.standing
    if (standing === undefined) return []
    return [{ standing, t, shown: body === null ? null : shown.has(nameOf(body, { ...standing, t })) }]
  })
}

function nameOf(body: number, { t, kind, offered }: Pick<Standing, 't' | 'kind' | 'offered'>): string {
  return JSON.stringify([body, t, kind, offered])
}
