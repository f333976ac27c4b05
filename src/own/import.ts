import { LakeError, usage } from '../errors.ts'
import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { isOwn } from '../catalog/catalogue.ts'
import { exportRule, mappingRow, type OwnRow, ownEndpoint, ownName, type SourceMapping } from '../catalog/sources.ts'
import { type Series, seriesId } from '../catalog/series.ts'
import { stepSql } from '../intervals-sql.ts'
import { commit, type Draft, type Ticket, type Version } from '../ledger/commit.ts'
import { rulesOf } from '../ledger/datings.ts'
import { footerOf } from '../ledger/draft.ts'
import type { CoverageRow, Json } from '../ledger/entry.ts'
import { heldCoverage, heldWeekStart, liveFiles } from '../ledger/held.ts'
import { type JobDeps, type Result, type Run, withLake } from '../ledger/job.ts'
import { heldLost } from '../ledger/lost.ts'
import { openSpool, type Spool } from '../ledger/sweep.ts'
import { learntOf } from '../metrics/batch.ts'
import { existing, ownName as partName, recentName, recentOf, stagedFiles } from '../metrics/convert-batch.ts'
import { differingIn, judge, standingBySeries } from '../metrics/differing.ts'
import { differingAtOnce } from '../metrics/tally.ts'
import { keepingProven } from '../metrics/verified.ts'
import {
  type Body,
  bodyAt,
  type BodyResult,
  type ConvertPart,
  type Ordered,
  type Reader,
} from '../points/conversion.ts'
import { convert } from '../points/convert.ts'
import { isRecent, partitionsOf } from '../points/files.ts'
import { ownPrefix, ownRows, withOwn } from '../points/own-rows.ts'
import { numbered, rowsSql, statement } from '../points/sql.ts'
import { statsOf } from '../points/stage.ts'
import { Engine, quote } from '../store/engine.ts'
import { versioned } from '../store/layout.ts'
import { end, formatInstant, type Instant, type Interval } from '../time.ts'
import { type Given, givenBy, exportDay, isQuery, refuseGrown } from './files.ts'
import { readRows, refuseRow, type Rows, stagedSql } from './rows.ts'

/** What is imported, and how it is mapped beside what the lake knows of it already. */
export interface ImportInput {
  readonly root: string
  readonly name: string
  readonly files: readonly string[]
  readonly mapping: SourceMapping
  /** Whether the mapping says all, and nothing of it is as it was before. */
  readonly whole: boolean
  readonly catalogue: Catalogue
  readonly cwd: string
  readonly maxBytes: number
}

/** What came of an import. */
export interface Imported {
  readonly name: string
  readonly rows: number
  readonly points_added: number
  readonly vintages_added: number
  /** Rows that brought nothing, and why. */
  readonly left: number
  readonly left_because: { readonly held: number; readonly unfinished: number; readonly doubled: number }
  /** Points that the lake holds between the first and the last `t` of the files, and that they lack. */
  readonly lacking: number
  readonly violations: number
  readonly version: number
  readonly notes: readonly string[]
}

/** What came of it, and the error with which a command ends all the same. */
export interface Ended {
  readonly summary: Imported
  readonly error: LakeError | null
}

/** Takes files of the user's into the lake as the series `own/NAME`: all of them, or nothing where a row cannot be used. */
export async function importOwn(input: ImportInput, deps: JobDeps): Promise<Ended> {
  const name = `${ownPrefix}${input.name}`
  refuseName(input, name)
  return await withLake({ root: input.root, name: 'import', lock: 'import' }, deps, async (run) => {
    await using spool = await openSpool(input.root, run.id, deps)
    using engine = await Engine.open(':memory:', { tempDirectory: spool.file('duckdb') })
    const held = ownRows(run.ledger).get(name)
    const given = await givenBy(engine, input.files, input)
    const { mapping, notes } = mapped(input, given, held)
    const rows = await readRows(engine, given, mapping, heldWeekStart(run.ledger))
    await refuseGrown(given.files)
    const importing: Importing = { run, deps, spool, engine, input, rows, path: name, row: rowOf(rows, held, input) }
    await run.begin({ files: given.files.map(({ path }) => path), rows: rows.rows, series: name }, () => ({}))
    return await taken(importing, [...notes, ...rows.notes])
  })
}

interface Importing {
  readonly run: Run
  readonly deps: JobDeps
  readonly spool: Spool
  readonly engine: Engine
  readonly input: ImportInput
  readonly rows: Rows
  /** The metric. */
  readonly path: string
  readonly row: OwnRow
}

function refuseName({ name, catalogue }: ImportInput, path: string): void {
  if (!ownName.safeParse(name).success)
    throw usage(`--as ${name}`, {
      expected: 'a name of small letters, digits and _, with / between its parts',
      got: name,
    })
  const taken = catalogue.endpoints.get(path)
  if (taken && !isOwn(taken))
    throw usage(`--as ${name}`, {
      expected: 'a name that the catalogue has not',
      got: `${path}, which stands at ${taken.source}`,
    })
}

const clocks = ['available', 'available_at', 'vintage'] as const
const shapes = ['value', 'components'] as const

/** What is said now, over how the lake holds it already: of keys that exclude one another the new one counts. */
function over(before: SourceMapping, said: SourceMapping): SourceMapping {
  const given = (keys: readonly (keyof SourceMapping)[]) =>
    keys.filter(() => keys.some((key) => said[key] !== undefined))
  const dropped = new Set<string>([...given(clocks), ...given(shapes)])
  return { ...Object.fromEntries(Object.entries(before).filter(([key]) => !dropped.has(key))), ...said }
}

/** The mapping that holds for these files, and what there is to say of it. */
function mapped({ mapping: said, name, whole }: ImportInput, { files }: Given, held?: OwnRow) {
  const before = held?.mapping ?? {}
  const mapping = whole ? said : over(before, said)
  const wrong = mappingRow.safeParse(mapping).error?.issues[0]
  if (wrong) throw usage(`--as ${name}`, { expected: wrong.message, got: 'both' })
  const fixed = ({ components, revisable = false }: SourceMapping): string => JSON.stringify([components, revisable])
  if (held && fixed(mapping) !== fixed(before))
    throw usage(`--as ${name}`, {
      expected: 'the components of what it holds already, and revisable or not as that is',
      got: 'others',
      next: 'import it under another name',
    })
  if (clocks.some((key) => mapping[key] !== undefined)) return { mapping, notes: [] }
  const dated = files.length > 0 && files.every(({ path }) => exportDay(path) !== null)
  if (dated && files.length > 1) {
    const notes = ['dated exports: what each says is known from the end of its day on (--available export)']
    return { mapping: { ...mapping, available: exportRule }, notes }
  }
  const also = dated ? '; if its name is the day of an export, say --available export' : ''
  const assumed =
    'when values were known is assumed: at the end of their intervals (--available-at or --available says it)'
  return { mapping, notes: [`${assumed}${also}`] }
}

/** What the lake will keep of it: the mapping and all that there is of each dimension, what came before included. */
function rowOf({ mapping, interval }: Rows, held: OwnRow | undefined, { files, cwd }: ImportInput): OwnRow {
  const named = files.map((file) => (isQuery(file) || file.startsWith('/') ? file : `${cwd}/${file}`))
  const none = { files: [], intervals: [], currencies: [], exchanges: [], networks: [] }
  const { files: before, ...rest } = held ?? none
  return {
    ...none,
    ...rest,
    mapping,
    files: [...new Set([...before, ...named])].slice(-keptFiles),
    intervals: union(rest.intervals, [interval]),
  }
}

/** So many names of files are kept, for whoever compares the lake with them. */
const keptFiles = 200

const union = <T>(one: readonly T[], other: readonly T[]): T[] => [...new Set([...one, ...other])]

/** What of the rows is one series, of one export where there are several. */
interface Portion extends Readonly<Record<'asset' | 'currency' | 'exchange' | 'network', string | null>> {
  readonly day: Instant | null
  readonly first: Instant
  readonly last: Instant
}

async function portionsOf({ engine, rows }: Importing): Promise<Portion[]> {
  const { keys, constants, interval, mapping } = rows
  const start = startOf(mapping, interval)
  const own = ['asset', 'currency', 'exchange', 'network', 'day'].map((name) => {
    if (keys.some((key) => key === name)) return name
    const constant = name === 'day' ? undefined : constants[name as 'asset']
    return constant === undefined ? `NULL AS ${name}` : `'${constant.replaceAll("'", "''")}' AS ${name}`
  })
  const group = keys.length === 0 ? '' : ` GROUP BY ${keys.join(', ')} ORDER BY ${keys.includes('day') ? 'day' : '1'}`
  const found = await numbered<Portion>(
    engine,
    `SELECT ${own.join(', ')}, min(${start}) AS first, max(${start}) AS last FROM own_rows${group}`,
  )
  for (const name of ['asset', 'currency', 'exchange', 'network'] as const) {
    const strange = found.map((one) => one[name]).find((text) => text !== null && /\p{Cc}|^\s|\s$/u.test(text))
    if (strange === undefined || strange === null) continue
    const text = strange.replaceAll("'", "''")
    await refuseRow(engine, rows, () => `own_${name} = '${text}'`, {
      flag: name,
      wanted: 'a name without control signs, or spaces around it',
    })
  }
  return found
}

/** SQL of the start of the interval that a row's `mark` names. */
function startOf({ timestamp }: SourceMapping, interval: Interval): string {
  return timestamp === 'interval_end' ? stepSql('mark', interval, -1) : 'mark'
}

/** Compares the rows with what is held and commits what is new; what has nothing new makes no version. */
async function taken(importing: Importing, notes: readonly string[]): Promise<Result<Ended>> {
  const { run, deps, rows, path } = importing
  const portions = await portionsOf(importing)
  const row = { ...importing.row }
  for (const [many, one] of [
    ['currencies', 'currency'],
    ['exchanges', 'exchange'],
    ['networks', 'network'],
  ] as const)
    row[many] = union(
      row[many],
      portions.flatMap((portion) => portion[one] ?? []),
    )
  const endpoint = ownEndpoint(path, row)
  let done: Drafted | undefined
  const version = await commit(
    run.ledger,
    async (ticket) => {
      done = await drafted({ ...importing, row }, endpoint, portions, ticket)
      return done.draft
    },
    deps,
  )
  if (!done) throw new RangeError('an import that nobody drafted')
  const told = summary(importing, done, version, notes)
  const error = verdictOf(told, done.incidents, rows)
  return { value: { summary: told, error }, stopped_by: null, error }
}

function verdictOf({ violations }: Imported, incidents: number, { given }: Rows): LakeError | null {
  if (violations === 0) return null
  if (incidents > 0) return differingAtOnce(incidents)
  return new LakeError('integrity', {
    subject: `${violations} stored values differ in ${given.files[0]?.path ?? 'the SELECT'}`,
    next: 'nothing stored was changed: see pitlake violations list, then pitlake violations accept',
  })
}

interface Drafted {
  readonly draft: Draft
  readonly bodies: readonly BodyResult[]
  readonly violations: number
  readonly incidents: number
  readonly lacking: number
  readonly kept: number
  readonly doubled: number
}

async function drafted(
  importing: Importing,
  endpoint: Endpoint,
  portions: readonly Portion[],
  ticket: Ticket,
): Promise<Drafted> {
  const { run, deps, spool, engine, input, rows, path, row } = importing
  const { ledger } = run
  const { bodies, days } = bodiesOf(importing, portions, ticket)
  const ids = [...new Set(bodies.map(({ series }) => series.id))]
  const standing = standingBySeries(ledger, ids)
  const lost = heldLost(ledger, ids)
  const held = liveFiles(ledger, { table: 'points' })
  const own = partitionsOf(held.filter((file) => !isRecent(file))).get(`${path} ${rows.interval}`)?.own ?? []
  const about = {
    metric: path,
    interval: rows.interval,
    rules: endpoint.rules[rows.interval],
    overlap: endpoint.overlap,
  }
  const told = bodies.map((body) => ({
    ...body,
    standing: standing.get(body.series.id),
    lost: lost.get(body.series.id),
  }))
  const reading = readerOf(rows, days)
  const parts: ConvertPart[] = [
    { ...about, bodies: told, existing: existing(ledger, own), out: spool.file(partName(0)) },
  ]
  const recent = { existing: existing(ledger, recentOf(held, parts)), out: spool.file(recentName) }
  const made = await convert(engine, {
    parts,
    recent,
    // The rows are staged as starts already.
    timestamp: 'interval_start',
    weekStart: heldWeekStart(ledger),
    observedAt: BigInt(ticket.committed_at),
    metadata: footerOf(ticket),
    during: deps.during,
    reader: reading.reader,
  })
  const files = stagedFiles(spool, parts, made, versioned(ticket.version, run.id))
  const differing = differingIn(ledger, standing, made)
  const catalogue = withOwn(input.catalogue, ledger)
  const judged = judge(ledger, differing, { recorded: 0, at: ticket.committed_at, intervalOf: () => rows.interval })
  const asks = bodies.map(({ series }) => ({ ask: { series, interval: rows.interval } }))
  const learnt = await learntOf({ engine: async () => engine, ledger }, asks, { bodies: made.bodies, files })
  const state =
    files.length > 0 || ownRows(ledger).get(path) === undefined
      ? { [path]: JSON.parse(JSON.stringify(row)) as Json }
      : {}
  const draft: Draft = {
    job: 'import',
    run: run.id,
    provider: { synthetic: ledger.head().provider?.synthetic ?? false },
    add: files,
    series: bodies.map(({ series }) => ({ ...series, settled: rows.interval })),
    regained: made.regained,
    coverage: keepingProven(ledger, coverageOf(bodies, made.bodies, rows.interval)),
    violations: judged.violations,
    passed: judged.passed,
    findings: made.findings,
    ...learnt,
    rules: rulesOf({ ...catalogue, endpoints: new Map([...catalogue.endpoints, [path, endpoint]]) }),
    state,
  }
  const { violations, incidents } = judged.seen
  return {
    draft,
    bodies: made.bodies,
    violations: violations.length + incidents.length,
    incidents: incidents.length,
    lacking: made.lacking,
    kept: made.kept,
    doubled: reading.doubled(),
  }
}

/** One body a series, and a day where each file is an export of one; by the names of the bodies. */
function bodiesOf({ run, rows, path }: Importing, portions: readonly Portion[], ticket: Ticket) {
  const now = Math.floor(ticket.committed_at / 1_000_000)
  const series = portions.map(({ asset, currency, exchange, network }): Series => {
    const own = { metric: path, asset: asset ?? '', interval: rows.interval, currency, exchange, network, params: {} }
    return { id: seriesId(own), ...own }
  })
  const coverage = heldCoverage(run.ledger, [...new Set(series.map(({ id }) => id))])
  const days = new Map<string, Instant | null>()
  const bodies = series.flatMap((own, i): Body[] => {
    const portion = portions[i]
    if (portion === undefined) return []
    const { first, last, day } = portion
    const prior = (coverage.get(own.id) ?? [])
      .filter(({ state }) => state === 'covered')
      .map(({ since, until, asked_at: askedAt }) => ({ since, until, askedAt }))
    const window = { since: first, until: end(last, rows.interval) }
    const request = `${run.id}-${i}`
    days.set(request, day)
    return [{ file: '', request, series: own, ...window, askedAt: now, horizon: now, prior }]
  })
  return { bodies, days }
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

/** Stages the user's rows, each under the number of its body. */
function readerOf(rows: Rows, days: ReadonlyMap<string, Instant | null>) {
  const { keys, mapping, interval } = rows
  let doubled = 0
  const stage: Reader['stage'] = async (session, ordered) => {
    const bodies = ordered.map(({ body: { series, request } }, body) => ({
      body,
      ...Object.fromEntries(keys.map((key) => [key, key === 'day' ? days.get(request) : series[key]])),
    }))
    const columns = ['body INTEGER', ...keys.map((key) => `${key} ${key === 'day' ? 'BIGINT' : 'VARCHAR'}`)].join(', ')
    await session.run(`CREATE TEMP TABLE own_bodies AS ${rowsSql(columns, bodies)}`)
    await session.run(stagedSql(rows, startOf(mapping, interval)))
    await session.run(statement('canonical'))
    const staged = await statsOf({ engine: session }, '(SELECT *, true AS sound FROM staged)')
    const twice = [...staged].filter(([, body]) => body.doubled).map(([body]) => body)
    doubled = twice.length === 0 ? 0 : await countDoubled(session, rows, ordered, twice)
    return { staged, poison: new Map<number, string>() }
  }
  const unload: Reader['unload'] = async (session) => {
    await session.run('DROP VIEW staged; DROP TABLE own_rows')
  }
  return { reader: { stage, unload, clocked: mapping.available !== exportRule }, doubled: () => doubled }
}

/** How many rows tell a point again; two that say different things of one are an error. */
async function countDoubled(
  session: Engine,
  rows: Rows,
  ordered: readonly Ordered[],
  bodies: readonly number[],
): Promise<number> {
  const these = bodies.join(', ')
  const [conflict] = await numbered<{ body: number; t: Instant }>(session, statement('conflicts', { bodies: these }))
  if (conflict) await refuseConflict(session, rows, bodyAt(ordered, conflict.body).body.series, conflict.t)
  const [counted] = await numbered<{ doubled: number }>(
    session,
    `SELECT sum(n - 1) AS doubled FROM (SELECT count(*) AS n FROM staged WHERE body IN (${these}) GROUP BY body, t)`,
  )
  return counted?.doubled ?? 0
}

/** Names the second row that tells a point. */
async function refuseConflict(session: Engine, rows: Rows, series: Series, t: Instant): Promise<never> {
  const own = rows.keys.flatMap((key) => (key === 'day' ? [] : [`own_${key} = ${quote(series[key] ?? '')}`]))
  const mark = rows.mapping.timestamp === 'interval_end' ? end(t, rows.interval) : t
  const wanted = `one value for ${series.asset} at ${formatInstant(mark)}, which another row tells otherwise`
  const where = (column: string): string => [...own, `${column} = ${mark}`].join(' AND ')
  return await refuseRow(session, rows, where, { flag: rows.mapping.components?.[0] ?? 'value', wanted }, 2)
}

function summary({ rows, input }: Importing, done: Drafted, version: Version, notes: readonly string[]): Imported {
  const { kept, doubled, lacking, violations } = done
  const { points_added } = version
  const shrunk = `${lacking} points that the lake holds between the first and the last row are not in the files: they stay`
  return {
    name: input.name,
    rows: rows.rows,
    points_added,
    vintages_added: 0,
    left: rows.rows - points_added,
    left_because: { held: kept - points_added, unfinished: rows.rows - doubled - kept, doubled },
    lacking,
    violations,
    version: version.version,
    notes: lacking === 0 ? notes : [...notes, shrunk],
  }
}
