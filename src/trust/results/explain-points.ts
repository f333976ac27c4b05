import { liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Engine, quote, quoteName } from '../../lake/store/engine.ts'
import type { SeriesName } from '../../catalog/series.ts'
import type { Micros } from '../../base/time.ts'
import { alteredScript, realPoints, relationOfPoints } from '../../query/views/script.ts'
import { tableOf, filesSql } from '../../query/views/relations.ts'
import { countOf, type FirstRow, type StampNote } from './stamped-rows.ts'
import { openViewSession, type ViewSession, type KeptRun } from './explain-runs.ts'
import { changedFields, type FieldChange, smallestPart, textsOf } from './explain-text.ts'
import { price, priced } from '../../query/points.ts'
import { instantText } from '../../query/projection.ts'
import type { RunDeps } from '../../query/run.ts'

/** A stored point at one version. */
export interface PointState {
  /** Number; null for a point with an object, or without a value. */
  readonly v: number | null
  /** Object or list as JSON text; null for a number. */
  readonly o: string | null
  readonly available_at: string
  /** Instant at which this lake first stored the point. */
  readonly observed_at: string
  readonly basis: string
}

/** Point that a commit added, redated or removed. */
export interface ChangedPoint extends SeriesName {
  readonly t: string
  /** The point before the commit; null if it was not stored. */
  readonly from: PointState | null
  /** The point after the commit; null if it is not stored. */
  readonly to: PointState | null
}

/** A step in the history of a record of the registry. */
export interface ChangedRecord {
  /** Table of the record. */
  readonly table: string
  readonly id: string
  /** Kind of the step: the operation of the registry, `listed`, or `gone` for a step that the commit removed. */
  readonly what: string
  /** Instant of the step, ISO. */
  readonly at: string
  /** Fields that differ from the step before; empty for a new or deleted record. */
  readonly fields: readonly FieldChange[]
}

/** Points and records of a commit without any one of which the first differing row would be unchanged. */
export interface RowCauses {
  readonly points: readonly ChangedPoint[]
  readonly records: readonly ChangedRecord[]
  /** Whether nothing can be left out; false if the tries ended before. */
  readonly minimal: boolean
}

/** Two neighbouring versions with different results. */
export interface VersionPair {
  readonly ledger: Ledger
  readonly root: string
  /** The text of the views, its version, and the query over it. */
  readonly script: string
  readonly version: number
  readonly note: Pick<StampNote, 'query' | 'variables'>
  /** The instants of both commits. */
  readonly earlier: Micros
  readonly guilty: Micros
  readonly after: KeptRun
  readonly row: FirstRow
  /** Maximum runs. */
  readonly tries: number
  readonly onTry: () => void
}

/** Table whose rows may be those from before the commit or from after it. */
interface Table {
  readonly name: string
  /** Relation over its files, as in the text of the views. */
  readonly relation: string
  /** Columns that identify a row. */
  readonly keys: readonly string[]
  /** Keys by which rows belong together, the widest first. */
  readonly within: readonly string[]
  /** Column with the time at which a row came. */
  readonly clock: string
  /** SQL with which the relation is read. */
  readonly read: string
}

/** Differing row: the table, its number there, and its groups, the widest first. */
interface Item {
  readonly table: Table
  readonly n: number
  readonly within: readonly string[]
}

const none: RowCauses = { points: [], records: [], minimal: true }
const pointsWithin = ['asset', 'metric', 't']
const pointKeys = ['metric', 'interval', 'asset', 'currency', 'exchange', 'network', 'params', 't']

/** Finds points and records of a commit that make the row; undefined if none of them does. */
export async function makersOf(between: VersionPair, run: Omit<RunDeps, 'folder'>): Promise<RowCauses | undefined> {
  const tables = tablesOf(between)
  const script = mixedScript(between.script, tables)
  if (script === undefined) return undefined
  const { root, note } = between
  // Metrics that the query names come first: in a large lake they are few.
  for (const named of [true, false]) {
    const before = async (engine: Engine): Promise<void> => await gather(engine, tables, between, named)
    using mixed = await openViewSession({ root, script, ...note, before }, run)
    const makers = await narrowChanges(mixed, tables, between)
    if (makers !== undefined) return makers
  }
  return undefined
}

async function narrowChanges(
  mixed: ViewSession,
  tables: readonly Table[],
  between: VersionPair,
): Promise<RowCauses | undefined> {
  const all = await itemsOf(mixed.engine, tables)
  const wanted = await countOf(between.after.session, between.row)
  const does = async (part: readonly Item[]): Promise<boolean> => {
    between.onTry()
    await choose(mixed.engine, tables, part)
    using rows = await mixed.at(between.guilty)
    return (await countOf(rows.session, between.row)) === wanted
  }
  if (all.length === 0 || !(await does(all)) || (await does([]))) return undefined
  const { part, minimal } = await narrowByGroups(all, does, between.tries)
  return { ...(await readCauses(mixed.engine, part)), minimal }
}

/**
 * Narrows a set by leaving out whole assets, metrics and instants before single points: what makes a row often belongs
 * together.
 */
async function narrowByGroups(all: readonly Item[], does: (part: readonly Item[]) => Promise<boolean>, most: number) {
  let part = all
  let left = most
  const counted = async (some: readonly Item[]): Promise<boolean> => {
    left--
    return await does(some)
  }
  for (const level of [0, 1, 2]) {
    const groups = [...Map.groupBy(part, ({ within }) => within[level]).values()]
    if (groups.length === part.length) continue
    const keptItems = new Set(
      (await smallestPart(groups, async (some) => await counted(some.flat()), left)).part.flat(),
    )
    part = part.filter((item) => keptItems.has(item))
  }
  return await smallestPart(part, counted, left)
}

/** Lists the points, and every table of the registry's history, as the text of the views reads them. */
function tablesOf({ ledger, root, script, version }: VersionPair): readonly Table[] {
  const points = relationOfPoints(script)
  const ofPoints =
    points === undefined
      ? []
      : [{ name: 'points', relation: points, keys: pointKeys, within: pointsWithin, clock: 'observed_at' }]
  const records = [...script.matchAll(historyView)].map(([, name = '', relation = '']) => ({
    name: `history.${name}`,
    relation,
    // A step names the later one that supersedes it: if that one is left out it must not.
    read: `(SELECT * REPLACE (CAST(NULL AS TIMESTAMPTZ) AS superseded_at) FROM ${relation})`,
    keys: ['id', 'at'],
    within: ['id'],
    clock: 'at',
  }))
  const listed = liveFiles(ledger, { table: 'metric_assets', version })
  const assets = filesSql(root, tableOf('metric_assets', new Map()), listed)
  const ofAssets = {
    name: 'metric_assets',
    relation: assets,
    keys: ['id', 'observed_at'],
    within: ['id'],
    clock: 'observed_at',
  }
  const all = [...ofPoints, ...records, ...(script.includes(assets) ? [ofAssets] : [])]
  return all.map((table) => ({ read: table.relation, ...table }))
}

/** The view of a history, its name, and the relation over its files. */
const historyView = /^CREATE OR REPLACE VIEW history\."(\w+)" AS\n(?:[^;]*?)\nFROM (\([^;]*?\))\nWHERE \(/gm

/** Builds the text of the views over tables of which some rows are chosen. */
function mixedScript(script: string, tables: readonly Table[]): string | undefined {
  let mixed: string | undefined = script
  for (const table of tables) {
    if (table.name === 'points') mixed = alteredScript(mixed, mixedSql(table, realPoints))
    else mixed = mixed.replaceAll(table.relation, () => `(${mixedSql(table, table.read)})`)
    if (mixed === undefined) return undefined
  }
  return mixed
}

/** Builds the SQL of the rows of a relation that did not differ, and of the chosen ones among those that did. */
function mixedSql(table: Table, relation: string): string {
  const same = table.keys.map((key) => `own.${quoteName(key)} IS NOT DISTINCT FROM real.${quoteName(key)}`)
  return `SELECT real.* FROM ${relation} AS real ANTI JOIN ${tableName(table, 'differing')} AS own
     ON ${same.join(' AND ')}
    UNION ALL BY NAME SELECT * EXCLUDE (n) FROM ${tableName(table, 'chosen')}`
}

/** Names a table of the session that contains a part of a table of the lake. */
function tableName({ name }: Table, what: 'before' | 'after' | 'differing' | 'chosen'): string {
  return quoteName(`explained ${what} ${name}`)
}

/** Collects the keys that differ between both versions, and their rows in each. */
async function gather(engine: Engine, tables: readonly Table[], between: VersionPair, named: boolean): Promise<void> {
  const { query } = between.note
  const texts = named ? [...(await textsOf(engine, query)), ...(query.includes(price) ? [priced] : [])] : null
  for (const table of tables) {
    const { read, clock, keys } = table
    const isRevisable =
      texts && table.name === 'points' ? `stored.metric IN (${['', ...texts].map(quote).join(', ')})` : 'true'
    const rows = (joined = ''): string =>
      `${read} AS stored${joined} WHERE ${isRevisable} AND stored.${quoteName(clock)}`
    const list = keys.map(quoteName).join(', ')
    const sides = [
      { side: tableName(table, 'before'), at: `make_timestamptz(${between.earlier}::BIGINT)` },
      { side: tableName(table, 'after'), at: `make_timestamptz(${between.guilty}::BIGINT)` },
    ] as const
    const [before, after] = sides
    /** Makes a table of the rows in each version. */
    const createHeld = async (columns: string, joined?: string): Promise<void> => {
      for (const { side, at } of sides)
        await engine.run(
          `SET VARIABLE observed_as_of = ${at};
           CREATE OR REPLACE TABLE ${side} AS SELECT ${columns} FROM ${rows(joined)} <= ${at}`,
        )
    }
    // Received rows stay, unless points were redated: only then the rows from before the commit are compared.
    const isDatedAnew = read.includes('observed_as_of')
    if (isDatedAnew) await createHeld(`${list}, hash(stored) AS row_hash`)
    const other = isDatedAnew
      ? `(FROM ${before.side} EXCEPT FROM ${after.side}) UNION ALL (FROM ${after.side} EXCEPT FROM ${before.side})`
      : `FROM ${rows()} > ${before.at} AND stored.${quoteName(clock)} <= ${after.at}`
    await engine.run(
      `CREATE TABLE ${tableName(table, 'differing')} AS SELECT ${list}, row_number() OVER (ORDER BY ${list}) AS n
       FROM (SELECT DISTINCT ${list} FROM (${other}))`,
    )
    const same = keys.map((key) => `stored.${quoteName(key)} IS NOT DISTINCT FROM own.${quoteName(key)}`).join(' AND ')
    await createHeld('stored.*, own.n', ` JOIN ${tableName(table, 'differing')} AS own ON ${same}`)
    await engine.run(`CREATE TABLE ${tableName(table, 'chosen')} AS FROM ${after.side} LIMIT 0`)
  }
  await engine.run('SET VARIABLE observed_as_of = NULL')
}

async function itemsOf(engine: Engine, tables: readonly Table[]): Promise<readonly Item[]> {
  const items: Item[] = []
  for (const table of tables) {
    const within = table.within.map((key) => `CAST(${quoteName(key)} AS VARCHAR)`).join(', ')
    const rows = await engine.rows<{ n: bigint; within: readonly string[] }>(
      `SELECT n, [${within}] AS within FROM ${tableName(table, 'differing')} ORDER BY n`,
    )
    for (const row of rows) items.push({ table, n: Number(row.n), within: row.within })
  }
  return items
}

/** Puts the rows of these items as they were after the commit into the lake, of all others as they were before it. */
async function choose(engine: Engine, tables: readonly Table[], part: readonly Item[]): Promise<void> {
  const chosen = Map.groupBy(part, ({ table }) => table)
  for (const table of tables) {
    const list = `CAST([${(chosen.get(table) ?? []).map(({ n }) => n).join(', ')}] AS BIGINT[])`
    const into = tableName(table, 'chosen')
    await engine.run(
      `DELETE FROM ${into};
       INSERT INTO ${into} BY NAME SELECT * FROM ${tableName(table, 'after')} WHERE n IN (SELECT unnest(${list}));
       INSERT INTO ${into} BY NAME SELECT * FROM ${tableName(table, 'before')} WHERE n NOT IN (SELECT unnest(${list}))`,
    )
  }
}

async function readCauses(engine: Engine, part: readonly Item[]): Promise<RowCauses> {
  const points: ChangedPoint[] = []
  const records: ChangedRecord[] = []
  for (const { table, n } of part)
    if (table.name === 'points') points.push(await pointOf(engine, table, n))
    else records.push(await recordOf(engine, table, n))
  return { ...none, points, records }
}

/** A record as a mapped type, as the engine's rows need it. */
type Plain<T> = { readonly [K in keyof T]: T[K] }

async function pointOf(engine: Engine, table: Table, n: number): Promise<ChangedPoint> {
  const names = pointKeys.filter((key) => key !== 'params' && key !== 't').map(quoteName)
  const [key] = await engine.rows<Plain<Omit<ChangedPoint, 'from' | 'to'>>>(
    `SELECT ${names.join(', ')}, ${instantText('t')} AS t FROM ${tableName(table, 'differing')} WHERE n = ${n}`,
  )
  if (key === undefined) throw new RangeError('no such point')
  const side = async (what: 'before' | 'after'): Promise<PointState | null> => {
    const [found] = await engine.rows<Plain<PointState>>(
      `SELECT v, o, ${instantText('available_at')} AS available_at, ${instantText('observed_at')} AS observed_at, basis
       FROM ${tableName(table, what)} WHERE n = ${n}`,
    )
    return found ?? null
  }
  return { ...key, from: await side('before'), to: await side('after') }
}

type Step = { readonly id: string; readonly at: string; readonly what: string; readonly record: string | null }

async function recordOf(engine: Engine, table: Table, n: number): Promise<ChangedRecord> {
  const { name, clock, read } = table
  const at = quoteName(clock)
  const what =
    name === 'metric_assets' ? `'listed'` : `CASE WHEN op IS NULL THEN coalesce(closed_by, 'deleted') ELSE op END`
  const steps = async (from: string): Promise<Step | undefined> =>
    (await engine.rows<Step>(`SELECT id, ${instantText(at)} AS at, ${what} AS what, record FROM ${from} LIMIT 1`))[0]
  const now = await steps(`${tableName(table, 'after')} WHERE n = ${n}`)
  const step = now ?? (await steps(`${tableName(table, 'before')} WHERE n = ${n}`))
  if (step === undefined) throw new RangeError('no such record')
  const before = await steps(
    `${read} AS real WHERE id = ${quote(step.id)} AND ${instantText(at)} < ${quote(step.at)} ORDER BY ${at} DESC`,
  )
  const texts = [before?.record, step.record].flatMap((text) => text ?? [])
  const [was, is] = texts.map((text) => JSON.parse(text) as Record<string, unknown>)
  // For a record that appears or disappears no fields are listed.
  const fields = was && is ? changedFields(was, is) : []
  return { table: name, id: step.id, what: now === undefined ? 'gone' : step.what, at: step.at, fields }
}
