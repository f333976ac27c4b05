import type { During } from '../../base/stopwatch.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { usage } from '../../base/errors.ts'
import { ownEndpoint } from '../../catalog/own-endpoint.ts'
import { seriesId } from '../../catalog/series.ts'
import { onSessions } from '../../catalog/sessions.ts'
import { exportRule, type OwnRow, type SourceMapping } from '../../catalog/sources.ts'
import { stepSql } from '../../base/intervals-sql.ts'
import { commit, type Draft, type Ticket, type Version } from '../../lake/ledger/commit.ts'
import { rulesOf } from '../points/datings.ts'
import type { CoverageRow, Json, Violation } from '../../lake/ledger/entry.ts'
import { loadCoverage, storedWeekStart } from '../../lake/ledger/index-queries.ts'
import type { JobDeps, Run } from '../../lake/ledger/job.ts'
import { storedLosses } from '../../lake/ledger/lost-points.ts'
import { openSpool } from '../../lake/ledger/spool-sweep.ts'
import { judgeDifferences, learntFrom } from '../metrics/commit-batch.ts'
import { type ConversionDeps, convertBeside, differingIn, standingBySeries } from '../metrics/convert-batch.ts'
import { keepingProven } from '../metrics/verify-findings.ts'
import type { Body, BodyResult, Reader, Staged } from '../points/conversion-types.ts'
import { ownPrefix, ownRows, withOwn } from '../points/own-rows.ts'
import { revisableState } from '../points/revisable.ts'
import { rowsAsNumbers, rowsSql, statement } from '../points/sql.ts'
import { Engine, quote } from '../../lake/store/engine.ts'
import { count, day, end, floor, type Instant, type Interval, step } from '../../base/time.ts'
import { minus, type Window } from '../../base/windows.ts'
import { refuseRow } from './row-faults.ts'
import { mappedWords, type Word } from './row-plan.ts'
import { type ImportedRows, stagedSql } from './rows.ts'

/** A run that takes rows of the user's own as the metric `path`. */
interface Taking {
  readonly run: Run
  readonly deps: JobDeps
  readonly root: string
  readonly catalogue: Catalogue
  readonly path: string
  /** Version on which the draft depends: if the lake has a newer one, nothing is drafted. */
  readonly of?: number
}

/** The rows that were read, and the row that the lake stores about them. */
interface Given {
  readonly rows: ImportedRows
  readonly row: OwnRow
  /** Whether that row is stored in any case, or only together with points. */
  readonly renewed?: boolean
}

/** The part of the rows that belongs to one series, and to one export if there are several. */
interface Portion extends Readonly<Record<Word, string | null>> {
  readonly day: Instant | null
  /** The dimension whose name looks like a different one; null for none. */
  readonly unfit: Word | null
  readonly points: number
  /** Number of values that are -0.0. */
  readonly zeros: number
  readonly first: Instant
  readonly last: Instant
}

/** Rows of the user's, compared with the stored points. */
export interface DraftedImport {
  /** The commit: of a verify nothing but differences. */
  readonly draft: Draft
  /** Stored values that differ; an incident counts as one. */
  readonly violations: number
  /** The violations of single points. */
  readonly differing: readonly Violation[]
  readonly incidents: number
  /** Points and vintages that are new. */
  readonly added: number
  /** Stored points between the first and the last row that the rows lack. */
  readonly lacking: number
  /** New points that are late: known only from this import on. */
  readonly late: number
  /** Points that might be stored, stored before or not. */
  readonly storable: number
  /** Rows that repeat a point. */
  readonly doubled: number
}

/** The result of taking rows into the lake. */
interface ImportOutcome {
  readonly rows: ImportedRows
  /** Undefined if nothing was drafted. */
  readonly done: DraftedImport | undefined
  readonly version: Version
}

/**
 * Reads rows in an engine of their own, compares them with the stored points and commits what is new; a verify commits
 * only differences. Without news there is no version.
 */
export async function takeRows(taking: Taking, read: (engine: Engine) => Promise<Given>): Promise<ImportOutcome> {
  const { run, deps, root, of } = taking
  await using spool = await openSpool(root, run.id, deps)
  using engine = await Engine.open(':memory:', { tempDirectory: spool.file('duckdb') })
  const imported = await read(engine)
  const portions = await portionsOf(engine, imported.rows)
  const row = withDimensions(imported.row, portions)
  let done: DraftedImport | undefined
  const draft = async (ticket: Ticket): Promise<Draft | null> => {
    if (of !== undefined && ticket.version !== of + 1) return null
    const beside = { ledger: run.ledger, spool, engine, run: run.id, ticket }
    const { catalogue, path } = taking
    const { rows, renewed = false } = imported
    const { job } = run
    const source = { job, catalogue, path, rows, row, renewed, during: deps.during }
    done = await draftImport(beside, source, portions)
    return done.draft
  }
  const version = await commit(run.ledger, draft, deps)
  return { rows: imported.rows, done, version }
}

/** Adds the values of each dimension that occur in the rows to the stored row. */
function withDimensions(row: OwnRow, portions: readonly Portion[]): OwnRow {
  const all = (values: readonly string[], name: Word): string[] => [
    ...new Set([...values, ...portions.flatMap((portion) => portion[name] ?? [])]),
  ]
  const currencies = all(row.currencies, 'currency')
  const exchanges = all(row.exchanges, 'exchange')
  return { ...row, currencies, exchanges, networks: all(row.networks, 'network') }
}

/** Finds the series in the rows, with the range of each. */
async function portionsOf(engine: Engine, rows: ImportedRows): Promise<Portion[]> {
  const { keys, columns, constants, interval, mapping } = rows
  const start = startOf(mapping, interval)
  const columnList = [...mappedWords, 'day' as const].map((name) => {
    if (keys.includes(name)) return name
    const constant = name === 'day' ? undefined : constants[name]
    return `${constant === undefined ? 'NULL' : quote(constant)} AS ${name}`
  })
  const unfit = keys.flatMap((key) => (key === 'day' ? [] : [`WHEN ${isUnfitSql(key)} THEN ${quote(key)}`]))
  const group = keys.length === 0 ? '' : ` GROUP BY ${keys.join(', ')} ORDER BY ${keys.includes('day') ? 'day' : '1'}`
  const portions = await rowsAsNumbers<Portion>(
    engine,
    `SELECT ${columnList.join(', ')}, ${unfit.length === 0 ? 'NULL' : `CASE ${unfit.join(' ')} END`} AS unfit,
      count(*) AS points, min(${start}) AS first, max(${start}) AS last,
      ${columns.has('v') ? 'count(*) FILTER (WHERE v = 0 AND signbit(v))' : '0'} AS zeros FROM user_rows${group}`,
  )
  await refuseNames(engine, rows, portions)
  return portions.filter(({ points }) => points > 0)
}

/** Pattern of names that look like a different one: control signs, or blanks at an end. */
const unfitName = String.raw`\p{Cc}|^[\p{Z}${'\ufeff'}]|[\p{Z}${'\ufeff'}]$`

/** SQL condition that a name looks like a different one; not JavaScript's, to which texts come without a leading BOM. */
const isUnfitSql = (name: string): string => `regexp_matches(CAST(${name} AS VARCHAR), ${quote(unfitName)})`

/** Refuses names that look like a different one, in the mapping or in a row. */
async function refuseNames(engine: Engine, rows: ImportedRows, portions: readonly Portion[]): Promise<void> {
  const wanted = 'a name without control signs, or spaces around it'
  for (const [name, constant] of Object.entries(rows.constants))
    if (new RegExp(unfitName, 'u').test(constant))
      throw usage(`--${name}`, { expected: wanted, got: JSON.stringify(constant) })
  const unfit = portions.find((portion) => portion.unfit !== null)?.unfit
  if (unfit) await refuseRow(engine, rows, { flag: unfit, wanted, bad: isUnfitSql(`_read_${unfit}`) })
}

/** SQL of the start of the interval that a row's `mark` names. */
function startOf({ timestamp }: SourceMapping, interval: Interval): string {
  return timestamp === 'interval_end' ? stepSql('mark', interval, -1) : 'mark'
}

/** The rows to import, and the row that the lake stores about them. */
interface ImportSource {
  /** Job of the run: of a verify nothing but differences are drafted. */
  readonly job: string
  readonly catalogue: Catalogue
  /** The metric. */
  readonly path: string
  readonly rows: ImportedRows
  readonly row: OwnRow
  /** Whether `row` is stored in any case, or only together with points. */
  readonly renewed: boolean
  readonly during: During | undefined
}

/** Compares the rows with the stored points and drafts their commit. */
async function draftImport(
  beside: ConversionDeps,
  { job, catalogue: baseCatalogue, path, rows, row, renewed, during }: ImportSource,
  portions: readonly Portion[],
): Promise<DraftedImport> {
  const { ledger, engine, ticket, run } = beside
  const { interval } = rows
  const endpoint = ownEndpoint(path, row, baseCatalogue.sessions)
  const { bodies, standing, named } = bodiesOf(beside, { path, rows, row }, portions)
  const part = {
    metric: path,
    interval,
    rules: endpoint.rules[interval],
    overlap: endpoint.overlap,
    revisable: endpoint.revisable ? (isDated(rows) ? ('told' as const) : ('observed' as const)) : undefined,
    bodies,
  }
  // The rows are staged as interval starts already.
  const how = { timestamp: 'interval_start', weekStart: storedWeekStart(ledger), during } as const
  const staged = await convertBeside(beside, [part], [part], { ...how, reader: readerOf(rows, named) })
  const differences = differingIn(ledger, standing, staged)
  const judged = judgeDifferences(ledger, differences, {
    recorded: 0,
    at: ticket.committed_at,
    intervalOf: () => interval,
  })
  const about = { job, run, provider: { synthetic: ledger.head().provider?.synthetic ?? false } }
  const asks = bodies.map(({ series }) => ({ ask: { series, interval } }))
  const learnt = await learntFrom({ engine: async () => engine, ledger }, asks, staged)
  const fresh = renewed || staged.files.length > 0 || ownRows(ledger).get(path) === undefined
  const catalogue = withOwn(baseCatalogue, ledger)
  const wholeDraft: Draft = {
    ...about,
    add: staged.files,
    series: bodies.map(({ series }) => ({ ...series, settled: interval })),
    regained: staged.regained,
    coverage: keepingProven(ledger, coverageOf(bodies, staged.bodies, rows, baseCatalogue.sessions)),
    violations: judged.violations,
    passed: judged.passed,
    findings: staged.findings,
    ...learnt,
    rules: rulesOf({ ...catalogue, endpoints: new Map([...catalogue.endpoints, [path, endpoint]]) }),
    state: {
      ...(fresh && { [path]: JSON.parse(JSON.stringify(row)) as Json }),
      ...(endpoint.revisable && revisableState(ledger, [path])),
    },
  }
  const { violations: differing, incidents } = judged.seen
  return {
    draft: job === 'verify' ? { ...about, violations: judged.violations, passed: judged.passed } : wholeDraft,
    violations: differing.length + incidents.length,
    differing,
    incidents: incidents.length,
    added: staged.bodies.reduce((sum, { added }) => sum + added, 0),
    lacking: staged.lacking,
    late: staged.latePoints,
    storable: staged.kept,
    doubled: rows.doubled,
  }
}

/** Whether the files date each value themselves. */
const isDated = ({ keys, columns }: ImportedRows): boolean => columns.has('computed') || keys.includes('day')

/**
 * Builds one body per series, and per day if each file is an export of one; returns the portions by the names of the
 * bodies.
 */
function bodiesOf(
  { ledger, run, ticket }: Pick<ConversionDeps, 'ledger' | 'run' | 'ticket'>,
  { path, rows, row }: Pick<ImportSource, 'path' | 'rows' | 'row'>,
  portions: readonly Portion[],
) {
  const now = Math.floor(ticket.committed_at / 1_000_000)
  const { revisable, vintage } = row.mapping
  // Vintages are stored at the time by which their source dates them, whenever they arrive; features follow from stored
  // data.
  const judged = path.startsWith(ownPrefix) && isDated(rows) && revisable !== true && vintage === undefined
  const all = portions.map((portion, i) => {
    const { asset, currency, exchange, network } = portion
    const series = {
      metric: path,
      asset: asset ?? '',
      interval: rows.interval,
      currency,
      exchange,
      network,
      params: {},
    }
    return { request: `${run}-${i}`, series: { id: seriesId(series), ...series }, portion }
  })
  const ids = [...new Set(all.map(({ series }) => series.id))]
  const coverage = loadCoverage(ledger, ids)
  const standing = standingBySeries(ledger, ids)
  const losses = storedLosses(ledger, ids)
  const bodies = all.map(({ request, series, portion: { first, last } }): Body => {
    const { id } = series
    const answers = coverage.get(id) ?? []
    const prior = answers
      .filter(({ state }) => state === 'covered')
      .map(({ since, until, asked_at: askedAt }) => ({ since, until, askedAt }))
    const window = { since: first, until: end(last, rows.interval), askedAt: now, horizon: now, prior }
    const lastImport =
      judged && answers.length > 0 ? Math.max(...answers.map(({ asked_at: askedAt }) => askedAt)) : undefined
    return { file: '', request, series, ...window, lastImport, standing: standing.get(id), lost: losses.get(id) }
  })
  return { bodies, standing, named: new Map(all.map(({ request, portion }) => [request, portion])) }
}

/**
 * Builds the coverage of each series by the files: everything between their first and last row, except missing points.
 */
function coverageOf(
  requested: readonly Body[],
  bodies: readonly BodyResult[],
  { interval, mapping }: ImportedRows,
  sessions: Catalogue['sessions'],
): CoverageRow[] {
  const calendar = sessions.get(mapping.sessions ?? '')
  const results = new Map(bodies.map((body) => [body.request, body]))
  return requested.flatMap(({ request, series, askedAt }) => {
    const { first = null, last = null, missing = [] } = results.get(request) ?? {}
    if (first === null || last === null) return []
    const row = { series: series.id, asked_at: askedAt, request: null, state: 'covered' as const }
    const whole = { since: first, until: end(last, interval) }
    const inside = missing.filter(({ since, until }) => since >= whole.since && until <= whole.until)
    const weekly = mapping.expected === 'weekdays' ? inside.flatMap(withoutWeekends) : inside
    const gaps = calendar === undefined ? weekly : weekly.flatMap((window) => onSessions(calendar, window))
    const coveredRows = minus([whole], gaps).map((window) => ({ ...row, ...window, reason: null }))
    return [...coveredRows, ...gaps.map((window) => ({ ...row, ...window, reason: 'gap' }))]
  })
}

/** Returns the parts of a window on days from Monday to Friday, UTC. */
function withoutWeekends(window: Window): Window[] {
  const first = floor(window.since, '1w')
  const weekends = Array.from({ length: count(first, window.until, '1w') }, (_, n): Window => {
    const monday = step(first, '1w', n + 1)
    return { since: monday - 2 * day, until: monday }
  })
  return minus([window], weekends)
}

/** Stages the user's rows, each under the number of its body; the portions are those of the bodies' requests. */
function readerOf(rows: ImportedRows, portions: ReadonlyMap<string, Portion>): Reader {
  const { keys, mapping, interval } = rows
  const stage: Reader['stage'] = async (session, ordered) => {
    const bodies = ordered.map(({ body: { request } }, body) => ({ ...portions.get(request), body }))
    const columns = ['body INTEGER', ...keys.map((key) => `${key} ${key === 'day' ? 'BIGINT' : 'VARCHAR'}`)].join(', ')
    const typed = rows.typed.map((key) => `CAST(${key} AS name_of_${key}) AS ${key}`)
    const replaced = typed.length === 0 ? '' : `REPLACE (${typed.join(', ')})`
    await session.run(`CREATE TEMP TABLE user_bodies AS SELECT * ${replaced} FROM (${rowsSql(columns, bodies)})`)
    const { sql, joins } = stagedSql(rows, startOf(mapping, interval))
    await session.run(sql)
    await session.run(statement('canonical_json'))
    const staged = bodies.map(({ body, points = 0, zeros = 0, first = 0, last = 0 }): [number, Staged] => {
      const datedPoints = isDated(rows) ? points : 0
      return [
        body,
        { points, told: datedPoints, sound: true, minusZero: zeros > 0, doubled: rows.doubled > 0, first, last },
      ]
    })
    return { staged: new Map(staged), poison: new Map<number, string>(), sorted: !keys.includes('day'), alike: !joins }
  }
  const unload: Reader['unload'] = async (session) => {
    await session.run('DROP VIEW staged_points; DROP TABLE user_rows')
  }
  return { stage, unload, clocked: mapping.available !== exportRule }
}
