import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { type Series, seriesId } from '../catalog/series.ts'
import { exportRule, type OwnRow, type SourceMapping } from '../catalog/sources.ts'
import { stepSql } from '../intervals-sql.ts'
import type { Draft, Ticket } from '../ledger/commit.ts'
import { rulesOf } from '../points/datings.ts'
import { footerOf } from '../ledger/draft.ts'
import type { CoverageRow, Json, Violation } from '../ledger/entry.ts'
import { heldCoverage, heldWeekStart, liveFiles } from '../ledger/held.ts'
import type { JobDeps, Run } from '../ledger/job.ts'
import { heldLost } from '../ledger/lost.ts'
import type { Spool } from '../ledger/sweep.ts'
import { judge, learntFrom } from '../metrics/batch.ts'
import {
  differingIn,
  existing,
  partName,
  recentName,
  recentOf,
  stagedFiles,
  standingBySeries,
} from '../metrics/convert-batch.ts'
import { keepingProven } from '../metrics/verify-findings.ts'
import {
  type Body,
  bodyAt,
  type BodyResult,
  type ConvertPart,
  type Ordered,
  type Reader,
  type Staged,
} from '../points/conversion.ts'
import { convert } from '../points/convert.ts'
import { isRecent, partitionsOf } from '../points/files.ts'
import { ownRows, withOwn } from '../points/own-rows.ts'
import { revisableState } from '../points/revisable.ts'
import { numbered, rowsSql, statement } from '../points/sql.ts'
import { type Engine, quote } from '../store/engine.ts'
import { versioned } from '../store/layout.ts'
import { end, formatInstant, type Instant, type Interval } from '../time.ts'
import { refuseRow, stagedSql, type TakenRows } from './rows.ts'

/** An import on its way. */
export interface Importing {
  readonly run: Run
  readonly deps: JobDeps
  readonly spool: Spool
  readonly engine: Engine
  readonly catalogue: Catalogue
  readonly rows: TakenRows
  /** The metric. */
  readonly path: string
  readonly row: OwnRow
  /** Whether what the lake keeps of it changes in any case. */
  readonly renewed?: boolean
}

/** What of the rows is one series, of one export where there are several. */
export interface Portion extends Readonly<Record<'asset' | 'currency' | 'exchange' | 'network', string | null>> {
  readonly day: Instant | null
  readonly points: number
  /** How many values are -0.0. */
  readonly zeros: number
  readonly first: Instant
  readonly last: Instant
}

/** SQL of the start of the interval that a row's `mark` names. */
export function startOf({ timestamp }: SourceMapping, interval: Interval): string {
  return timestamp === 'interval_end' ? stepSql('mark', interval, -1) : 'mark'
}

/** What a commit brings, and what is told of it. */
export interface Drafted {
  readonly draft: Draft
  readonly violations: number
  /** Those of them that are of single points. */
  readonly differing: readonly Violation[]
  readonly incidents: number
  readonly lacking: number
  readonly kept: number
  readonly doubled: number
}

/** Compares the rows with what is held: the draft of the commit. */
export async function drafted(
  importing: Importing,
  endpoint: Endpoint,
  portions: readonly Portion[],
  ticket: Ticket,
): Promise<Drafted> {
  const { run, engine, catalogue: given, rows, path, row } = importing
  const { ledger } = run
  const { interval } = rows
  const { bodies, named } = bodiesOf(importing, portions, ticket)
  const ids = [...new Set(bodies.map(({ series }) => series.id))]
  const standing = standingBySeries(ledger, ids)
  const lost = heldLost(ledger, ids)
  const told = bodies.map((one) => ({ ...one, standing: standing.get(one.series.id), lost: lost.get(one.series.id) }))
  const reading = readerOf(rows, named)
  const made = await converted(importing, endpoint, told, ticket, reading.reader)
  const differing = differingIn(ledger, standing, made)
  const judged = judge(ledger, differing, { recorded: 0, at: ticket.committed_at, intervalOf: () => interval })
  const asks = bodies.map(({ series }) => ({ ask: { series, interval } }))
  const learnt = await learntFrom({ engine: async () => engine, ledger }, asks, made, ticket)
  const fresh = importing.renewed || made.files.length > 0 || ownRows(ledger).get(path) === undefined
  const catalogue = withOwn(given, ledger)
  const draft: Draft = {
    job: run.job,
    run: run.id,
    provider: { synthetic: ledger.head().provider?.synthetic ?? false },
    add: made.files,
    series: bodies.map(({ series }) => ({ ...series, settled: interval })),
    regained: made.regained,
    coverage: keepingProven(ledger, coverageOf(bodies, made.bodies, interval)),
    violations: judged.violations,
    passed: judged.passed,
    findings: made.findings,
    ...learnt,
    rules: rulesOf({ ...catalogue, endpoints: new Map([...catalogue.endpoints, [path, endpoint]]) }),
    state: {
      ...(fresh && { [path]: JSON.parse(JSON.stringify(row)) as Json }),
      ...(endpoint.revisable && revisableState(ledger, [path])),
    },
  }
  const { violations, incidents } = judged.seen
  const { lacking, kept } = made
  const many = violations.length + incidents.length
  const seen = { violations: many, differing: violations, incidents: incidents.length }
  return { draft, ...seen, lacking, kept, doubled: reading.doubled() }
}

/** Converts the rows as the bodies of answers are converted. */
async function converted(
  { run, deps, spool, engine, rows, path }: Importing,
  endpoint: Endpoint,
  bodies: readonly Body[],
  ticket: Ticket,
  reader: Reader,
) {
  const { ledger } = run
  const { interval } = rows
  const held = liveFiles(ledger, { table: 'points' })
  const own = partitionsOf(held.filter((file) => !isRecent(file))).get(`${path} ${interval}`)?.own ?? []
  const part: ConvertPart = {
    metric: path,
    interval,
    rules: endpoint.rules[interval],
    overlap: endpoint.overlap,
    revisable: endpoint.revisable ? (isDated(rows) ? 'told' : 'observed') : undefined,
    bodies,
    existing: existing(ledger, own),
    out: spool.file(partName(0)),
  }
  const job = {
    parts: [part],
    recent: { existing: existing(ledger, recentOf(held, [part])), out: spool.file(recentName) },
    // The rows are staged as starts already.
    timestamp: 'interval_start',
    weekStart: heldWeekStart(ledger),
    observedAt: BigInt(ticket.committed_at),
    metadata: footerOf(ticket),
    during: deps.during,
    reader,
  } as const
  const made = await convert(engine, job)
  return { ...made, files: stagedFiles(spool, [part], made, versioned(ticket.version, run.id)) }
}

/** Whether the files date each value themselves. */
const isDated = ({ keys, columns }: TakenRows): boolean => columns.has('computed') || keys.includes('day')

/** One body a series, and a day where each file is an export of one; by the names of the bodies. */
function bodiesOf({ run, rows, path }: Importing, portions: readonly Portion[], ticket: Ticket) {
  const now = Math.floor(ticket.committed_at / 1_000_000)
  const series = portions.map(({ asset, currency, exchange, network }): Series => {
    const own = { metric: path, asset: asset ?? '', interval: rows.interval, currency, exchange, network, params: {} }
    return { id: seriesId(own), ...own }
  })
  const coverage = heldCoverage(run.ledger, [...new Set(series.map(({ id }) => id))])
  const named = new Map<string, Portion>()
  const bodies = series.flatMap((own, i): Body[] => {
    const portion = portions[i]
    if (portion === undefined) return []
    const { first, last } = portion
    const prior = (coverage.get(own.id) ?? [])
      .filter(({ state }) => state === 'covered')
      .map(({ since, until, asked_at: askedAt }) => ({ since, until, askedAt }))
    const window = { since: first, until: end(last, rows.interval) }
    const request = `${run.id}-${i}`
    named.set(request, portion)
    return [{ file: '', request, series: own, ...window, askedAt: now, horizon: now, prior }]
  })
  return { bodies, named }
}

/** What the files tell of each series: all between their first and last row, but for what is missing there. */
function coverageOf(asked: readonly Body[], bodies: readonly BodyResult[], interval: Interval): CoverageRow[] {
  const results = new Map(bodies.map((body) => [body.request, body]))
  return asked.flatMap(({ request, series, askedAt }): CoverageRow[] => {
    const result = results.get(request)
    if (result === undefined || result.first === null || result.last === null) return []
    const row = { series: series.id, asked_at: askedAt, request: null, state: 'covered' as const }
    const whole = { since: result.first, until: end(result.last, interval) }
    const gaps = result.missing.filter(({ since, until }) => since >= whole.since && until <= whole.until)
    const edges = [whole.since, ...gaps.flatMap(({ since, until }) => [since, until]), whole.until]
    return edges.slice(0, -1).flatMap((since, n): CoverageRow[] => {
      const until = edges[n + 1] ?? since
      return since < until ? [{ ...row, since, until, reason: n % 2 === 0 ? null : 'gap' }] : []
    })
  })
}

/** Stages the user's rows, each under the number of its body; the portions are those of the bodies' requests. */
function readerOf(rows: TakenRows, portions: ReadonlyMap<string, Portion>) {
  const { keys, mapping, interval } = rows
  let doubled = 0
  const stage: Reader['stage'] = async (session, ordered) => {
    const bodies = ordered.map(({ body: { request } }, body) => ({ ...portions.get(request), body }))
    const columns = ['body INTEGER', ...keys.map((key) => `${key} ${key === 'day' ? 'BIGINT' : 'VARCHAR'}`)].join(', ')
    const typed = rows.typed.map((key) => `CAST(${key} AS own_${key}) AS ${key}`)
    const replaced = typed.length === 0 ? '' : `REPLACE (${typed.join(', ')})`
    await session.run(`CREATE TEMP TABLE own_bodies AS SELECT * ${replaced} FROM (${rowsSql(columns, bodies)})`)
    const { sql, joins } = stagedSql(rows, startOf(mapping, interval))
    await session.run(sql)
    await session.run(statement('canonical'))
    if (rows.doubled) doubled = await countDoubled(session, rows, ordered)
    const staged = bodies.map(({ body, points = 0, zeros = 0, first = 0, last = 0 }): [number, Staged] => {
      const told = isDated(rows) ? points : 0
      return [body, { points, told, sound: true, minusZero: zeros > 0, doubled: rows.doubled, first, last }]
    })
    return { staged: new Map(staged), poison: new Map<number, string>(), sorted: !keys.includes('day'), alike: !joins }
  }
  const unload: Reader['unload'] = async (session) => {
    await session.run('DROP VIEW staged; DROP TABLE own_rows')
  }
  return { reader: { stage, unload, clocked: mapping.available !== exportRule }, doubled: () => doubled }
}

/** How many rows tell a point again; two that say different things of one are an error. */
async function countDoubled(session: Engine, rows: TakenRows, ordered: readonly Ordered[]): Promise<number> {
  const these = [...ordered.keys()].join(', ')
  const once = rows.mapping.revisable === true || rows.mapping.vintage !== undefined ? 't, computed' : 't'
  const [conflict] = await numbered<{ body: number; t: Instant }>(
    session,
    statement('conflicts', { bodies: these, once }),
  )
  if (conflict) await refuseConflict(session, rows, bodyAt(ordered, conflict.body).body.series, conflict)
  const [counted] = await numbered<{ doubled: number }>(
    session,
    `SELECT sum(n - 1) AS doubled FROM (SELECT count(*) AS n FROM staged GROUP BY body, ${once})`,
  )
  return counted?.doubled ?? 0
}

/** Names the second row that tells a point. */
async function refuseConflict(
  session: Engine,
  rows: TakenRows,
  series: Series,
  { body, t }: { readonly body: number; readonly t: Instant },
): Promise<never> {
  const own = rows.keys.flatMap((key) => (key === 'day' ? [] : [`own_${key} = ${quote(series[key] ?? '')}`]))
  const mark = rows.mapping.timestamp === 'interval_end' ? end(t, rows.interval) : t
  const wanted = `one value for ${series.asset} at ${formatInstant(mark)}, which another row tells otherwise`
  const [twice] = await numbered<{ computed: number | null }>(
    session,
    `SELECT computed FROM staged WHERE body = ${body} AND t = ${t} GROUP BY computed
     HAVING count(DISTINCT coalesce(o, CAST(v AS VARCHAR), '')) > 1 LIMIT 1`,
  )
  const told = rows.columns.has('computed') && twice ? [`own_computed = ${twice.computed}`] : []
  const where = (column: string): string => [...own, ...told, `${column} = ${mark}`].join(' AND ')
  return await refuseRow(session, rows, where, { flag: rows.mapping.components?.[0] ?? 'value', wanted }, 2)
}
