import { machineLack, requireFileError } from '../../lake/store/file-errors.ts'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LakeError, usage } from '../../base/errors.ts'
import { number } from '../../base/figures.ts'
import { entriesIn, makeFolder, realDisk } from '../../lake/store/disk.ts'
import { type Cell, Engine, quote, quoteName } from '../../lake/store/engine.ts'
import { readText, realPath } from '../../lake/store/files.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { ownScript } from '../../query/altered-lake.ts'
import { literal, type SessionVariables } from '../../query/lake.ts'
import { carry } from '../../query/row-comparison.ts'
import { isCancel, type RunDeps } from '../../query/run.ts'
import { decisionEndSql } from '../lookahead/calendar.ts'
import { bringUserFiles, type OwnFile, ownTable, userRowsSql } from '../lookahead/own-files.ts'
import { bagDifference, fetched, type FoundLeak, isRounding, matchRows, upToSql } from '../lookahead/runs.ts'
import { prepareScript } from '../lookahead/script.ts'
import { openWorlds, querySubject, type Subject, type World, wholeLake } from '../lookahead/world.ts'
import { removeRows, type RowRange } from './removal.ts'
import { pointsTable, smallLakeOf, tableFromFile } from './small-lake.ts'

/** A leak that was found, and the query that leaks. */
export interface LeakToReproduce {
  /** Text of the query, with the statements before it. */
  readonly text: string
  readonly set: SessionVariables
  readonly files: readonly OwnFile[]
  readonly tolerance: number
  readonly leak: FoundLeak
  /** Maximum tries of removing rows. */
  readonly tries: number
}

/** Content of a folder that shows a leak. */
export interface Reproduction {
  readonly folder: string
  /** Rows of all of its tables. */
  readonly rows: number
  /** Rows of the lake's files and of user files with which it began. */
  readonly rowsBefore: number
  readonly tries: number
}

/** Refuses a folder that is not empty. */
export async function refuseFilledFolder(folder: string, flag: string): Promise<void> {
  const entries = await entriesIn(folder).catch((error: unknown) => {
    requireFileError(error, `${flag} ${folder}`)
    return undefined
  })
  if (entries !== undefined && entries.length === 0) return
  const got = entries === undefined ? 'a file' : 'one with files'
  throw usage(flag, { expected: 'a new or empty folder', got: `${folder}, ${got}`, next: 'name another folder' })
}

/**
 * Writes a folder in which anyone's Python with DuckDB shows a leak: the rows that matter, the query, what it needs of
 * the lake's views, and a script that compares both answers.
 */
export async function reproduceLeak(given: LeakToReproduce, run: RunDeps, folder: string): Promise<Reproduction> {
  const target = resolve(folder)
  await refuseFilledFolder(target, '--reproduce')
  using lake = await openWorlds(run.folder, { set: given.set, threads: 1 })
  await bringUserFiles(lake, given.files)
  const { sql, preparation } = await prepareScript(lake, given.text, run)
  await makeFolder(realDisk, join(target, 'data'))
  using small = await Engine.open(':memory:', { threads: 1 })
  await small.run(`SET TimeZone = 'UTC'; SET allowed_directories = [${quote(`${realPath(target)}/`)}]`)
  await small.run('SET enable_external_access = false; SET lock_configuration = true')
  const { trial, shown: all } = await copyLake(lake, small, { ...given, sql, preparation }, run)
  const rowsBefore = trial.tables.reduce((sum, { count }) => sum + count, 0)
  const { shown, tries } = await removeAll(trial, all, given.tries)
  await writeFolder(trial, shown, given, target)
  const rows = trial.tables.reduce((sum, { kept }) => sum + countRows(kept), 0)
  return { folder: target, rows, rowsBefore, tries }
}

/** Table of the small lake, and which of its rows are kept. */
interface TriedTable {
  readonly name: string
  readonly count: number
  kept: readonly RowRange[]
}

/** The small lake while rows are removed from it. */
interface SmallTrial {
  readonly small: Engine
  readonly subject: Subject
  readonly tables: readonly TriedTable[]
  /** Statements that make its views and macros. */
  readonly objects: readonly string[]
  /** Statements of the run without the future, in addition to its variables. */
  readonly ends: readonly string[]
  readonly leak: FoundLeak
  readonly tolerance: number
  readonly query: string
}

interface SplitQuery extends LeakToReproduce {
  readonly sql: string
  readonly preparation: readonly string[]
}

/** Copies the rows that the query may need, the fewest first, until the leak shows. */
async function copyLake(
  lake: Engine,
  small: Engine,
  query: SplitQuery,
  run: RunDeps,
): Promise<{ readonly trial: SmallTrial; readonly shown: ShownRows }> {
  const { sql, preparation, files, leak, tolerance } = query
  const text = [...preparation, sql].join(';\n\n')
  const folder = resolve(run.folder)
  const parts = smallLakeOf(await ownScript(folder), text)
  if (parts === undefined) throw unshown('views that this program made', 'those of another version of it')
  const others: TriedTable[] = []
  for (const { name, relation } of parts.tables)
    if (name !== pointsTable) others.push(await copyTable(lake, small, name, `FROM ${relation}`))
  const views: string[] = []
  for (const [name] of files) {
    others.push(await copyTable(lake, small, ownTable(name), `FROM ${quoteName(ownTable(name))}`))
    const columns = await columnsOf(small, quoteName(ownTable(name)))
    views.push(`CREATE OR REPLACE VIEW ${quoteName(name)} AS ${userRowsSql(name, columns)}`)
  }
  const points = parts.tables.find(({ name }) => name === pointsTable)
  const objects = [...parts.objects, ...views]
  const hasCalendar = objects.some((object) => / MACRO calendar\(/.test(object))
  const ends = leak.future === 'calendar' ? decisionEndSql(hasCalendar ? 'memory' : null) : []
  const subject = querySubject(small, sql, { preparation })
  let isMade = false
  for (const condition of points === undefined ? ['true'] : pointConditions(text)) {
    const read = points && (await copyTable(lake, small, points.name, `FROM ${points.relation} WHERE ${condition}`))
    const tables = read === undefined ? others : [...others, read]
    if (!isMade) {
      for (const object of objects) await small.run(object)
      for (const [name, value] of Object.entries(query.set))
        await small.run(`SET VARIABLE ${quoteName(name)} = ${literal(value)}`)
    }
    isMade = true
    const trial = { small, subject, tables, objects, ends, leak, tolerance, query: text }
    const shown = await shownRows(trial, tables)
    if (shown !== undefined) return { trial, shown }
  }
  throw unshown('a leak that the rows of the lake show by themselves', 'none in a copy of them')
}

function unshown(expected: string, got: string): LakeError {
  const next = 'the verdict stands; please report this case'
  return new LakeError('incomplete', { subject: '--reproduce', expected, got, next })
}

/** Builds the conditions for the stored points to try: those of metrics that the query names, then all. */
function pointConditions(text: string): readonly string[] {
  const named =
    `contains(${quote(text)}, metric) OR (contains(${quote(text)}, 'price_usd') AND starts_with(metric, ` +
    `'supply/'))`
  return [`(${named})`, 'true']
}

/** Copies rows into a table of that name; their numbers are those of a second table, which stays whole. */
async function copyTable(lake: Engine, small: Engine, name: string, sql: string): Promise<TriedTable> {
  await carry(lake, `SELECT * ${sql}`, small, wholeName(name))
  const whole = quoteName(wholeName(name))
  await small.run(`CREATE OR REPLACE TABLE main.${quoteName(name)} AS FROM ${whole}`)
  const [row] = await small.rows(`SELECT count(*) AS n FROM ${whole}`)
  const count = Number(row?.['n'])
  return { name, count, kept: [[0, count]] }
}

const wholeName = (name: string): string => `whole_${name}`

/** Fills the tables that the views read with the kept rows, in their order or from the last one on. */
async function fillTables(small: Engine, tables: readonly TriedTable[], order: RowOrder): Promise<void> {
  for (const { name, kept } of tables) {
    const where = kept.map(([from, until]) => `(rowid >= ${from} AND rowid < ${until})`).join(' OR ')
    const rows = `FROM ${quoteName(wholeName(name))} WHERE ${where === '' ? 'false' : where} ORDER BY rowid ${order}`
    await small.run(`CREATE OR REPLACE TABLE main.${quoteName(name)} AS ${rows}`)
  }
}

/** Order of the rows in a table, by their numbers. */
type RowOrder = 'ASC' | 'DESC'

const countRows = (kept: readonly RowRange[]): number => kept.reduce((sum, [from, until]) => sum + until - from, 0)

/** Runs the query in both worlds; the rows that differ, undefined if no value or row of the leaking column does. */
async function shownRows(
  trial: SmallTrial,
  tables: readonly TriedTable[],
  order: RowOrder = 'ASC',
): Promise<ShownRows | undefined> {
  const { small, leak, tolerance } = trial
  try {
    await fillTables(small, tables, order)
    await runBoth(trial)
    const bags = await bagDifference(small, leak.columns, upToSql(leak.at, leak.cutoff), fetched)
    const found = matchRows(leak.columns, bags, tolerance)
    const isLeak = found.some((one) => one.column === leak.column && !isRounding(one))
    return isLeak ? await differingRows(trial) : undefined
  } catch (error) {
    if (isCancel(error)) throw error
    const lack = machineLack(error, '--reproduce')
    if (lack !== undefined) throw lack
    return undefined
  }
}

/**
 * Finds the rows that differ with the data in either order. If equal values have no order of their own, another version
 * of the engine may order them differently: a difference from that alone is no leak.
 */
async function steadyRows(trial: SmallTrial, tables: readonly TriedTable[]): Promise<ShownRows | undefined> {
  const first = await shownRows(trial, tables)
  const second = first && (await shownRows(trial, tables, 'DESC'))
  if (first === undefined || second === undefined) return undefined
  const withFuture = commonRows(first.withFuture, second.withFuture)
  const without = commonRows(first.without, second.without)
  return withFuture.length + without.length > 0 ? { withFuture, without } : undefined
}

/** Rows of either side alone, each column as text. */
interface ShownRows {
  readonly withFuture: readonly (readonly Cell[])[]
  readonly without: readonly (readonly Cell[])[]
}

async function differingRows({ small, leak }: SmallTrial): Promise<ShownRows> {
  const only = async (one: string, other: string): Promise<readonly (readonly Cell[])[]> => {
    const sides = [one, other].map((table) => comparedSql(leak, table))
    const found = await small.rows(`FROM (${sides.join(' EXCEPT ALL ')}) ORDER BY ALL LIMIT ${fetched}`)
    return found.map((row) => Object.values(row))
  }
  return { withFuture: await only('proof_full', 'proof_cut'), without: await only('proof_cut', 'proof_full') }
}

function commonRows(one: ShownRows['without'], other: ShownRows['without']): ShownRows['without'] {
  return one.filter((row) => other.some((known) => row.every((cell, place) => isNear(cell, known[place] ?? null))))
}

/** Whether two cells are the same but for the last digits of a sum. */
function isNear(cell: Cell, other: Cell): boolean {
  if (cell === other) return true
  const number = Number(cell ?? Number.NaN)
  const otherNumber = Number(other ?? Number.NaN)
  return Math.abs(number - otherNumber) <= 1e-9 * Math.max(Math.abs(number), Math.abs(otherNumber))
}

/** Builds the SQL of the compared columns of a table up to the cut-off, as text. */
function comparedSql({ columns, at, cutoff }: FoundLeak, table: string): string {
  const names = columns
    .filter(({ label }) => !label)
    .map(({ name }) => `CAST(${quoteName(name)} AS VARCHAR) AS ${quoteName(name)}`)
  return `SELECT ${names.join(', ')} FROM ${table} WHERE ${upToSql(at, cutoff)}`
}

async function runBoth({ small, subject, ends, leak }: SmallTrial): Promise<void> {
  await subject.fill('proof_full', wholeLake)
  for (const sql of ends) await small.run(sql)
  try {
    await subject.fill('proof_cut', leak.world)
  } finally {
    if (ends.length > 0) {
      for (const name of ['range', 'generate_series']) await small.run(`DROP MACRO IF EXISTS temp.${name}`)
      for (const name of ['calendar', 'range', 'generate_series'])
        await small.run(`DROP MACRO TABLE IF EXISTS temp.${name}`)
    }
  }
}

/** Rows that are left after the removal. */
interface Reduced {
  readonly shown: ShownRows
  readonly tries: number
}

/** Removes rows of one table after the other, the largest last. */
async function removeAll(trial: SmallTrial, all: ShownRows, most: number): Promise<Reduced> {
  let tries = 0
  // The order of the rows may matter to the query itself: then it may matter to fewer of them.
  const steady = await steadyRows(trial, trial.tables)
  const look = steady === undefined ? shownRows : steadyRows
  let shown = steady ?? all
  const sorted = trial.tables.toSorted((one, other) => one.count - other.count)
  for (const [place, table] of sorted.entries()) {
    const share = Math.ceil((most - tries) / (sorted.length - place))
    const removal = await removeRows(table.count, share, async (kept) => {
      const rows = await look(
        trial,
        sorted.map((one) => (one === table ? { ...table, kept } : one)),
      )
      shown = rows ?? shown
      return rows !== undefined
    })
    tries += removal.tries
    table.kept = removal.kept
  }
  await fillTables(trial.small, sorted, 'ASC')
  return { shown, tries }
}

/** Formats the session variables of a world as statements. */
function worldSql(world: World): readonly string[] {
  return Object.entries(world).map(([name, value]) => `SET VARIABLE ${name} = ${quote(value)}`)
}

/** Maximum rows of each side that the folder lists. */
const listed = 20

async function writeFolder(trial: SmallTrial, shown: ShownRows, given: LeakToReproduce, folder: string): Promise<void> {
  const { small, tables, objects, ends, leak, query } = trial
  for (const { name } of tables)
    await small.run(
      `COPY main.${quoteName(name)} TO ${quote(join(realPath(folder), 'data', `${name}.parquet`))} (FORMAT parquet)`,
    )
  const settings = Object.entries(given.set).map(([name, value]) => `SET VARIABLE ${name} = ${literal(value)}`)
  const expected = {
    compared: comparedSql(leak, 'answer'),
    columns: leak.columns.filter(({ label }) => !label).map(({ name }) => name),
    only_with_the_future: shown.withFuture.slice(0, listed),
    only_without_it: shown.without.slice(0, listed),
  }
  const write = async (name: string, text: string): Promise<void> => await realDisk.write(join(folder, name), text)
  await write('views.sql', script([...tables.map(({ name }) => tableFromFile(name)), ...objects]))
  await write('query.sql', script([query]))
  await write('with.sql', script([...settings, 'SET VARIABLE as_of = NULL']))
  await write('without.sql', script([...settings, ...worldSql(leak.world), ...ends]))
  await write('expected.json', `${JSON.stringify(expected, null, 2)}\n`)
  await write('reproduce.py', await templateText('reproduce.py'))
  const facts = tables.map(
    ({ name, kept, count }) => `| \`data/${name}.parquet\` | ${number(countRows(kept))} | ${number(count)} |`,
  )
  const page = await templateText('reproduce.md')
  await write(
    'README.md',
    page.replace('{future}', futures[leak.future](leak.cutoff)).replace('{tables}', facts.join('\n')),
  )
}

const script = (statements: readonly string[]): string => `${statements.join(';\n\n')};\n`

/** Data that the run without the future has instead of it. */
const futures: Readonly<Record<FoundLeak['future'], (at: string) => string>> = {
  cut: (at) => `only what was known at ${at}`,
  'other values': (at) => `other values in the place of what became known after ${at}`,
  'other points': (at) => `a part of what became known after ${at} missing`,
  calendar: (at) => `no decisions after ${at}`,
}

async function templateText(name: string): Promise<string> {
  return await readText(fileURLToPath(new URL(`../../../catalog/templates/${name}`, import.meta.url)))
}
