import { withCleanup } from '../../base/cleanup.ts'
import { isFolder, isThere, readText, touch } from '../../lake/store/files.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { type CommitDeps, sha256File } from '../../lake/ledger/commit.ts'
import { runsMark } from '../../lake/ledger/derived.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import { diskError, namesIn, realDisk, statOf } from '../../lake/store/disk.ts'
import { Engine, quote, readsWell } from '../../lake/store/engine.ts'
import { liveFiles, storedWeekStart } from '../../lake/ledger/index-queries.ts'
import { resolve } from 'node:path'
import { inLake, places } from '../../lake/store/layout.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { proveLive } from '../../lake/ledger/live-digest.ts'
import { type Lock, waitForLock } from '../../lake/store/lock.ts'
import { atOneInstant } from '../../lake/ledger/index-rows.ts'
import { storedRevisable } from '../../sources/points/revisable.ts'
import { earlierDatings } from '../../sources/points/datings.ts'
import { withOwn } from '../../sources/points/own-rows.ts'
import { compile, type Compiled, type CompiledViews } from './compile.ts'
import { type ExportDeps, exportedTables, exportsFolder, exportTable, isExport } from './ledger-tables.ts'
import {
  catalogueDigest,
  isMadeBy,
  type Makers,
  type Manifest,
  manifestOf,
  namedByViews,
  noteProved,
  readByViews,
  readManifest,
  templatesDigest,
} from './manifest.ts'
import { changedObjects, scriptText } from './script.ts'

/*
 * The objects are the templates `src/query/views/sql/NN_name.sql`, one object for each file, in the order of their
 * numbers: header comments, then one CREATE statement, then COMMENT ON statements. No object names a different one: a
 * macro of an attached file looks for names in the catalogue of its caller, and even a view finds a temporary table of
 * the session before its own sibling. An object therefore contains the whole text of each object that it needs.
 *
 * Clocks and switches of the session:
 *   {{as_of}} {{observed_as_of}}   the session's instant, TIMESTAMPTZ; it folds to a constant, and is NULL while unset
 *   {{unset NAME}}                 true while the variable of that name is unset
 *   {{by_then X}}                  true if the lake did something at X, and X is not later than the ledger's clock:
 *                                  `observed_as_of`, and `ledger_as_of` if an interface sets it
 *   {{existing_by_then}}           true of rows that existed at the ledger's clock: added, and not removed by then
 *   {{stored_by_then X}}           X, or NULL if X is later than `ledger_as_of`
 *   {{newest_by_then}}             true if the newest commit is not later than `ledger_as_of`
 *   {{imports_known}}              condition on endpoints: user metrics are shown if a point of theirs is knowable
 *   {{backfill}}                   true while `backfill` is 'rule'; a word other than 'rule' and 'strict' is an error
 *   {{registry_backfill}}          true while the variable of that name is true
 *   {{shown_in_proof X}}           true if a look-ahead proof does not hide rows that arrived at X
 *
 * Relations, for FROM:
 *   {{files TABLE}}                the files of a table; a typed empty relation if there are none. Tables of dated
 *                                  states begin with `snapshot_date DATE`
 *   {{ledger NAME}}                an exported table, see `exportedTables` in ledger-tables.ts
 *   {{points}} {{points METRIC}}   the SELECT of the view `points`, or of one metric over its files only
 *   {{every_point}}                the same with every vintage; {{revisable_points}} of revisable metrics only
 *   {{points_and_vintages}}        in question_notes: the points of the queried metrics and their vintages
 *   {{points_by_clock}}            points, and again for each component with a separate clock
 *   {{components_of RELATION}}     the view `components` over a relation of points
 *   {{view NAME}}                  the SELECT of any view, such as `{{view history.products}}`
 *   {{part NAME}}                  a text of `sql/parts/`
 *
 * Columns and conditions:
 *   {{columns NAME}}               columns of the view over an exported table (src/lake/ledger/columns.ts)
 *   {{fields RESOURCE}}            typed columns of a resource, quoted, each followed by a comma
 *   {{available_by_rule ROW}} {{computed_at ROW}}   instants of a stored point: by its rule, and of the provider
 *   {{clock_condition}}            shows each component by one clock only
 *   {{distinct_list X}} {{distinct_text X}}         the different values of a group, as a list or as a text
 *   {{chain_of X}} {{contract_of X}}                a chain and an address as they are compared
 *
 * Texts:
 *   {{resource}}                   a file with it makes one object for each resource of the registry
 *   {{ledger_comments VIEW}} {{series_comments VIEW}} {{field_comments OBJECT}}   COMMENT ON COLUMN statements
 *   {{pattern NAME}}               the full path of a file of the lake, as a literal for glob()
 *   {{version}} {{digest}} {{committed_at}} {{lake}} {{folder}} {{provider}} {{synthetic}}   facts of the lake, literals
 *   {{before_first_code PATH}}     code of the note that nothing of a metric was known yet
 *   {{compared_values COLUMN}}     values with which the statements of a caller compare a column
 *   Placeholders of the joins are listed in joins.ts, those of notes in question-words.ts.
 */

/** Resources for building views. */
export interface ViewsBuild {
  readonly catalogue: Catalogue
  readonly deps: CommitDeps
}

/** Inputs of the views in addition to the ledger. */
interface ViewsOptions extends ViewsBuild {
  /** Makes the files again even if nothing changed. */
  readonly force?: boolean
  /**
   * The folder, absolute, that gets the three files instead of the lake's own; they then name nothing but the lake's
   * files and exports.
   */
  readonly into?: string
}

/** What a build of views left in place. Scripts rely on the names. */
export interface BuiltViews {
  /** Whether the files were made; false if they existed already. */
  readonly made: boolean
  /** Version of the lake. */
  readonly version: number
  /** Number of views, macros and schemas. */
  readonly objects: number
  /** Number of data files that the views can read. */
  readonly files: number
  /** Number of exports of the ledger that were written. */
  readonly exports: number
  /** Bytes of `lake.duckdb`. */
  readonly bytes: number
}

/**
 * Makes `lake.duckdb`, `lake.sql` and their manifest from the ledger. Each is replaced whole by rename: a session with
 * the old database open continues with it. Builders wait for each other, and each starts from what is committed by
 * then. `made` is false if the files existed already.
 */
export async function buildViews(ledger: Ledger, options: ViewsOptions): Promise<BuiltViews> {
  const { deps, into = ledger.root } = options
  await using _lock = await waitForViews(ledger.root, deps)
  using engine = openedOnce()
  try {
    const { mark, files, exported, statements, makers } = await compiled(ledger, options, engine)
    const script = scriptText(statements)
    const before = await readManifest(into)
    const had = await namedByViews(ledger.root)
    const isNeeded = options.force === true || !(await isBuilt(into, before, script))
    const earlier = before && options.force !== true ? await readText(inLake(into, places.script)) : ''
    const manifest = isNeeded
      ? await replaceAll(into, statements, { script, earlier, deps, mark, engine, makers })
      : before && (await madeAlso(into, before, makers, deps, mark))
    if (into === ledger.root) {
      await dropExports(into, had, deps)
      await noteProved(into, readByViews(ledger, manifest), deps.disk ?? realDisk, mark)
    }
    return {
      made: isNeeded,
      version: statements.version,
      objects: statements.objects.length,
      files: new Set(files.map(({ path }) => path)).size,
      exports: exported.written,
      bytes: (await statOf(inLake(into, places.database)))?.size ?? 0,
    }
  } catch (error) {
    throw diskError(error, 'building the views')
  }
}

/** Makes the text of the current views, and the list of what it names; writes nothing but exports that it names. */
export async function tellViews(ledger: Ledger, options: ViewsBuild): Promise<{ script: string; manifest: Manifest }> {
  await using _lock = await waitForViews(ledger.root, options.deps)
  using engine = openedOnce()
  const { statements, makers } = await compiled(ledger, options, engine)
  const script = scriptText(statements)
  return { script, manifest: manifestOf(statements, makers, sha256(script), '') }
}

type OpenEngine = (() => Promise<Engine>) & Disposable

/** Opens an engine for exports and objects at first use: often there is nothing to make. */
function openedOnce(): OpenEngine {
  let engine: Promise<Engine> | undefined
  let open: Engine | undefined
  const opened = async (): Promise<Engine> => (open = await Engine.open(':memory:', { threads: 1 }))
  return Object.assign(async () => await (engine ??= opened()), { [Symbol.dispose]: () => open?.close() })
}

/**
 * Compiles the objects over what is committed by now, all of one version; their exports are made, and what killed
 * builders left is removed.
 */
async function compiled(ledger: Ledger, { catalogue: baseCatalogue, deps }: ViewsBuild, engine: OpenEngine) {
  await ledger.catchUp()
  const catalogue = withOwn(baseCatalogue, ledger)
  await removeLeftovers(ledger.root, deps)
  return await atOneInstant(ledger, async () => {
    const mark = `${deps.holder.pid}-${Math.floor(deps.random() * 1e9).toString(36)}`
    proveLive(ledger)
    const files = liveFiles(ledger)
    const exported = await exportAll(ledger, catalogue, { engine, disk: deps.disk ?? realDisk, mark })
    const statements = compile({
      root: resolve(ledger.root),
      head: ledger.head(),
      catalogue,
      files,
      earlier: earlierDatings(files),
      weekStart: storedWeekStart(ledger),
      revisable: storedRevisable(ledger),
      exports: exported.paths,
    })
    const makers = {
      program: deps.program,
      templates: templatesDigest(),
      catalogue: catalogueDigest(baseCatalogue),
      runs: runsMark(ledger),
    }
    return { mark, files, exported, statements, makers }
  })
}

/** Name of the lock that a builder of views takes. */
export const viewsLock = 'views'
/** Seconds. */
const longestWait = 600

/** Waits until no other process makes views. */
export async function waitForViews(root: string, deps: CommitDeps): Promise<Lock> {
  const holder = { ...deps.holder, since: deps.nowMicros() }
  const lock = await waitForLock(root, viewsLock, holder, { ...deps, seconds: longestWait })
  if (lock) return lock
  throw new Error('another process has been building the views for ten minutes')
}

async function exportAll(
  ledger: Ledger,
  catalogue: Catalogue,
  tools: ExportDeps,
): Promise<{ paths: Map<string, string>; written: number }> {
  const paths = new Map<string, string>()
  let written = 0
  for (const [table, exported] of Object.entries(exportedTables(catalogue))) {
    const file = await exportTable(ledger, table, exported, tools)
    paths.set(table, file.path)
    if (file.written) written++
  }
  // The script that names them comes later; a killed builder may have left the names of some to us.
  await tools.disk.syncFolder(inLake(ledger.root, exportsFolder))
  return { paths, written }
}

/** Whether the views in place are those of this script, whole, and can be read. */
async function isBuilt(root: string, manifest: Manifest | undefined, script: string): Promise<boolean> {
  return manifest?.script === sha256(script) && (await readsWell(inLake(root, places.database)))
}

/** Milliseconds that an export stays after the views no longer name it, for sessions that opened them before. */
const exportsStay = 86_400_000

/**
 * Removes exports that no views have named for a day: each run that queries writes some. The time of the file shows
 * since when it is not named.
 */
async function dropExports(root: string, wasNamed: (path: string) => boolean, deps: CommitDeps): Promise<void> {
  const now = deps.nowMicros() / 1000
  const folder = inLake(root, exportsFolder)
  if (!(await isFolder(folder))) return
  const isNamed = await namedByViews(root)
  for (const name of (await namesIn(folder)).filter(isExport)) {
    const path = `${exportsFolder}/${name}`
    const full = inLake(root, path)
    if (isNamed(path)) continue
    if (wasNamed(path)) await touch(full, now)
    else if (((await statOf(full))?.mtimeMs ?? now) < now - exportsStay) await (deps.disk ?? realDisk).remove(full)
  }
}

const temporaryPrefix = '.tmp-views-'

/** New views, and what they replace. */
interface ViewsReplacement {
  readonly script: string
  /** Script from which the database in place was made; empty if that is unknown or unreliable. */
  readonly earlier: string
  readonly deps: CommitDeps
  readonly mark: string
  readonly engine: OpenEngine
  readonly makers: Makers
}

/**
 * Puts database, script and manifest in place, in this order: a manifest that does not fit the other two counts for
 * nothing.
 */
async function replaceAll(
  root: string,
  statements: CompiledViews,
  { script, earlier, deps, mark, engine, makers }: ViewsReplacement,
): Promise<Manifest> {
  const disk = deps.disk ?? realDisk
  const temporaryFile = (ending: string): string => inLake(root, `${temporaryPrefix}${mark}.${ending}`)
  const database = temporaryFile('duckdb')
  const text = temporaryFile('sql')
  const list = temporaryFile('json')
  const replace = async (): Promise<Manifest> => {
    const changed = changedObjects(statements.objects, earlier)
    const from = changed && inLake(root, places.database)
    await makeObjects(await engine(), { database, objects: changed ?? statements.objects, from })
    await disk.sync(database)
    await disk.write(text, script)
    const manifest = manifestOf(statements, makers, sha256(script), await sha256File(database))
    await disk.write(list, JSON.stringify(manifest))
    await disk.move(database, inLake(root, places.database))
    await disk.move(text, inLake(root, places.script))
    await disk.move(list, inLake(root, places.manifest))
    await disk.syncFolder(root)
    return manifest
  }
  return await withCleanup(replace, async () => {
    for (const left of [database, `${database}.wal`, text, list]) await disk.remove(left)
  })
}

/** Adds these makers to the manifest of existing views if they would make the same. */
async function madeAlso(
  root: string,
  before: Manifest,
  makers: Makers,
  deps: CommitDeps,
  mark: string,
): Promise<Manifest> {
  if (isMadeBy(before, makers)) return before
  const disk = deps.disk ?? realDisk
  const manifest = { ...before, ...makers }
  const temporary = inLake(root, `${temporaryPrefix}${mark}.json`)
  await disk.write(temporary, JSON.stringify(manifest))
  await disk.move(temporary, inLake(root, places.manifest))
  await disk.syncFolder(root)
  return manifest
}

/**
 * Storage version of the oldest DuckDB that opens a lake: earlier ones forget whether a macro's CTEs are kept or read
 * again.
 */
const storageVersion = 'v1.5.0'

/** Statement by which every commit is in the file itself, without a log that would repeat it. */
const noLog = "SET checkpoint_threshold = '1b'"

interface Writing {
  readonly database: string
  readonly objects: readonly Compiled[]
  /** Earlier database from which all other objects are copied. */
  readonly from: string | undefined
}

/**
 * Makes objects in memory, in place of those of the same names that an earlier database has, and writes them all at
 * once: each of hundreds of comments makes a further state of its view, and a file would keep them all until its
 * commit.
 */
async function makeObjects(engine: Engine, { database, objects, from }: Writing): Promise<void> {
  if (from !== undefined) {
    await engine.run(`ATTACH ${quote(from)} AS earlier (READ_ONLY)`)
    await engine.run('COPY FROM DATABASE earlier TO memory (SCHEMA)')
  }
  for (const object of objects) await runObject(engine, object)
  await engine.run(noLog)
  await copyViews(engine, database)
}

/** Writes the views and macros of an engine in memory into a database file, all at once. */
export async function copyViews(engine: Engine, database: string): Promise<void> {
  await engine.run(`ATTACH ${quote(database)} AS made (STORAGE_VERSION '${storageVersion}')`)
  await engine.run('COPY FROM DATABASE memory TO made (SCHEMA)')
  await engine.run('DETACH made')
  if (isThere(`${database}.wal`)) throw new Error('the views were written beside their database, not into it')
}

async function runObject(engine: Engine, object: Compiled): Promise<void> {
  try {
    await engine.run(object.sql)
  } catch (cause) {
    throw new Error(`${object.file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Removes what a killed builder left behind; only one builder is at work at a time. */
async function removeLeftovers(root: string, deps: CommitDeps): Promise<void> {
  const disk = deps.disk ?? realDisk
  for (const [folder, prefix] of [
    ['', temporaryPrefix],
    [exportsFolder, '.tmp-'],
  ] as const)
    for (const name of await namesIn(inLake(root, folder === '' ? '.' : folder)))
      if (name.startsWith(prefix)) await disk.remove(inLake(root, folder === '' ? name : `${folder}/${name}`))
}
