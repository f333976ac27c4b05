import { requireFileError } from '../lake/store/file-errors.ts'
import { dirname, join, resolve } from 'node:path'
import { isThere, makeSpill, realPath, removeSpill, textOf } from '../lake/store/files.ts'
import { withCleanup } from '../base/cleanup.ts'
import { type LakeError, usage } from '../base/errors.ts'
import { Engine, quote, quoteList, quoteName, literalPath, plainPath } from '../lake/store/engine.ts'
import { engineMemory } from '../lake/store/memory.ts'
import { inLake, places } from '../lake/store/layout.ts'
import { readObjects } from './views/template.ts'
import { admit, refusalOf } from './gate.ts'
import { optionAt } from './note-texts.ts'
import { type KnowledgeOptions, knowledgeOptions, type Moment } from './options.ts'
import { readOption, refuseStrange, findUnusedNames } from './read-options.ts'
import { refusal } from './refusal.ts'
import { refuseChanged } from './changed-files.ts'
import { movedScript, moveScript } from './moved-script.ts'
import { openingWords, statementsOf } from './statements.ts'

/** Value of a session variable. */
export type VariableValue = string | number | boolean | null

/** Session variables by name. */
export type SessionVariables = Readonly<Record<string, VariableValue>>

/** State of knowledge in which a lake is opened, and the limits of its session. */
export interface QueryOptions extends KnowledgeOptions {
  /** Further session variables by name. A variable that neither the lake knows nor a query reads is an error. */
  readonly set?: Readonly<Record<string, VariableValue>> | undefined
  /** Number of threads of DuckDB. Default: one for each core. */
  readonly threads?: number | undefined
}

/** Options of a session that only callers inside the program use. */
export interface SessionOptions extends QueryOptions {
  /** Memory limit of DuckDB alone, such as `2GB`. Default: half of the memory of the process. */
  readonly memoryLimit?: string | undefined
  /** Maximum bytes that queries may spill to the disk. */
  readonly spillLimit?: number | undefined
  /** Makes the views from this text instead of opening `lake.duckdb`: those of an earlier version. */
  readonly script?: string
  /** Mark that cannot be guessed, for untrusted clients: the views are rebuilt with it (`markedViews`). */
  readonly mark?: string | undefined
  /**
   * Whether the comments of that text are made whatever the query: they cost as much as the views, and few ask for
   * them.
   */
  readonly commented?: boolean
  /** Whether files that this text names may be missing for good: views that need them are left out. */
  readonly filesGone?: boolean
  /** The file of the database in which those views are made, for others to open; in memory without it. */
  readonly into?: string
  /** Makes what the text reads in addition to the files. */
  readonly before?: (engine: Engine) => Promise<void>
  /** Query that will run, which may read further variables; undefined if it is not known yet. */
  readonly query?: string | undefined
  /**
   * Whether plans keep every scan of a query: the engine answers much about a single file from its statistics, without
   * reading it.
   */
  readonly wholePlans?: boolean
  /** Whether any variable may be set, such as those of a result that was stamped earlier. */
  readonly anyVariable?: boolean
}

/**
 * Opens the views of a folder for reading: zone UTC, session variables set, no file outside the lake in reach. All
 * settings are locked before anything that is stored in the lake runs, for it may come from elsewhere. The session
 * keeps the snapshot that it opened; close it when done.
 */
export async function openQuery(dataFolder: string, options: SessionOptions = {}): Promise<Engine> {
  const folder = resolve(dataFolder)
  const engine = await openViews(folder, await findViews(folder, options))
  return closing(engine, async () => prepared(engine, options))
}

/** Views of a session, by the way in which it gets them. */
type SessionViews =
  /** Those in `lake.duckdb`. */
  | { readonly kind: 'stored'; readonly options: SessionOptions }
  /** Made in the session from a text. */
  | { readonly kind: 'made'; readonly options: ScriptOptions }
  /** Made from a text in a separate database, for untrusted clients. */
  | { readonly kind: 'frozen'; readonly options: ScriptOptions & { readonly mark: string } }

/** Options of a session whose views are made from a text. */
type ScriptOptions = SessionOptions & { readonly script: string }

/** Finds the views that a session opens. */
async function findViews(folder: string, options: SessionOptions): Promise<SessionViews> {
  const { mark } = options
  const viewsOfScript = (script: string, commented = options.commented): SessionViews => {
    const all = { ...options, script, ...(commented !== undefined && { commented }) }
    return mark === undefined ? { kind: 'made', options: all } : { kind: 'frozen', options: { ...all, mark } }
  }
  if (options.script !== undefined) return viewsOfScript(options.script)
  const moved = await movedScript(folder)
  if (moved !== undefined) return viewsOfScript(moved, true)
  if (mark === undefined) return { kind: 'stored', options }
  using stored = await openStored(folder, seenFolders(folder, options), options)
  const built = await checkStored(stored, folder)
  const text = (await textOf(inLake(folder, places.script))) ?? ''
  return viewsOfScript(moveScript(text, built ?? folder, folder), true)
}

/** Opens the views of a session, and checks that they show the folder. */
async function openViews(folder: string, { kind, options }: SessionViews): Promise<Engine> {
  const open = async (seen: ReadonlySet<string>): Promise<Engine> => {
    if (kind === 'stored') return await openStored(folder, seen, options)
    return kind === 'made' ? await openMade(folder, seen, options) : await openFrozen(folder, seen, options)
  }
  const seen = seenFolders(folder, options)
  const engine = await open(seen)
  const built = await closing(engine, async () =>
    kind === 'stored' ? checkStored(engine, folder) : builtFolder(engine, folder),
  )
  if (built === undefined || seen.has(built)) return engine
  // The same folder by another name: its views name the files by that one.
  engine.close()
  return await open(new Set([...seen, built]))
}

/** Lists the folders that the views of a session may read: the lake's own under both of its names. */
function seenFolders(folder: string, { into }: SessionOptions): ReadonlySet<string> {
  return new Set([folder, realPath(folder), ...(into === undefined ? [] : [dirname(into)])])
}

/** Closes the resource if the work fails. */
export async function closing<T>(resource: Disposable, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    resource[Symbol.dispose]()
    throw error
  }
}

async function prepared(engine: Engine, options: SessionOptions): Promise<Engine> {
  if (options.anyVariable !== true) {
    const { set = {}, query } = options
    refuseStrange(await findUnusedNames(engine, Object.keys(set), query ?? ''), query !== undefined)
  }
  await setVariables(engine, options)
  return engine
}

/** Opens `lake.duckdb` in a session that sees these folders and can change no setting any more. */
async function openStored(folder: string, seen: ReadonlySet<string>, options: SessionOptions): Promise<Engine> {
  const engine = await locked(await open(databaseOf(folder), folder, options, true), seen, options)
  return closing(engine, async () => {
    await refuseShadows(engine, folder)
    return engine
  })
}

/** Checks that the stored views show the files of the folder as committed; returns the folder that they name. */
async function checkStored(engine: Engine, folder: string): Promise<string | undefined> {
  const built = await builtFolder(engine, folder)
  if (built !== undefined) await refuseChanged(engine, folder)
  return built
}

/** Makes the views of a text in a session that sees these folders and can change no setting any more. */
async function openMade(folder: string, seen: ReadonlySet<string>, options: ScriptOptions): Promise<Engine> {
  const engine = await locked(await open(options.into ?? ':memory:', folder, options, false), seen, options)
  return closing(engine, async () => makeViews(engine, folder, options))
}

/** Locks the settings of an engine that was just opened. */
async function locked(engine: Engine, seen: ReadonlySet<string>, options: SessionOptions): Promise<Engine> {
  return closing(engine, async () => {
    if (options.wholePlans === true) await engine.run(`SET disabled_optimizers = 'statistics_propagation'`)
    await lock(engine, seen)
    return engine
  })
}

/**
 * Opens a lake for untrusted clients: the views are made once, in a separate database that is then opened read-only. No
 * statement of a session can exchange what the others read.
 */
async function openFrozen(
  folder: string,
  seen: ReadonlySet<string>,
  options: ScriptOptions & { readonly mark: string },
): Promise<Engine> {
  const { script, mark } = options
  // Loaded only here: no other session makes text or files of views.
  const { markedViews } = await import('./views/script.ts')
  const { copyViews } = await import('./views/build.ts')
  const home = makeSpill()
  try {
    const database = join(home, 'views.duckdb')
    {
      using maker = await locked(await open(':memory:', folder, options, false), new Set([...seen, home]), options)
      await makeViews(maker, folder, { ...options, script: markedViews(script, mark) })
      // A view that shows its file column would tell the mark.
      const shown = await maker.rows(`FROM system.main.duckdb_columns() WHERE column_name = ${quote(mark)}`)
      if (shown.length > 0) throw strangeViews(folder, 'views of this program', 'older ones')
      await copyViews(maker, database)
    }
    return await locked(await open(database, folder, { ...options, takes: home }, true), seen, options)
  } catch (error) {
    removeSpill(home)
    throw error
  }
}

/** Makes the views of a script, and what they read in addition to files. */
async function makeViews(engine: Engine, folder: string, options: ScriptOptions): Promise<Engine> {
  await options.before?.(engine)
  const commented = options.commented === true || /comment/i.test(options.query ?? '')
  const statementsOfViews = await viewStatements(engine, options.script, commented)
  if (options.filesGone === true) await runEach(engine, statementsOfViews)
  // On a line of its own no semicolon falls into a comment.
  else if (statementsOfViews.length > 0) await engine.run(statementsOfViews.join('\n;\n'))
  if (!makesOnlyKnownMacros(statementsOfViews)) await refuseShadows(engine, folder)
  return engine
}

/**
 * Whether statements make no macro but those of this program, none of which has the name of a function of the engine.
 * Listing the engine's functions takes longer than most queries.
 */
function makesOnlyKnownMacros(statements: readonly string[]): boolean {
  const known = new Set(readObjects([]).flatMap(({ kind, name }) => (kind === 'macro' ? [name.toUpperCase()] : [])))
  return statements.every((text) => {
    const [, ...made] = openingWords(text, 5).join(' ').split(' MACRO ')
    return made.every((name) => known.has(name))
  })
}

/** Builds the error for a lake with views that this program does not make; it can rebuild them. */
export function strangeViews(folder: string, expected: string, got: string, cause?: unknown): LakeError {
  return usage(`lake ${folder}`, { expected, got, next: 'run `pitlake views`', cause })
}

/** Reads the version that a session sees. */
export async function versionOf(engine: Engine): Promise<number> {
  const [row] = await engine.rows('SELECT version FROM lake_info')
  return Number(row?.['version'])
}

/** Formats the value of a variable as SQL. */
export function literal(value: VariableValue): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number' && !Number.isInteger(value)) return `CAST(${quote(String(value))} AS DOUBLE)`
  return String(value)
}

/** Variable that contains a timestamp; only interfaces set that of the ledger. */
type Clock = 'as_of' | 'observed_as_of' | 'ledger_as_of'

/** Sets such a variable, or clears it with undefined; a text that names no instant is refused, as `subject`'s. */
export async function setMoment(engine: Engine, name: Clock, moment?: Moment, subject = optionAt('terminal', name)) {
  const text = moment === undefined ? 'NULL' : quote(String(readOption(knowledgeOptions.as_of, subject, moment)))
  await engine.run(`SET VARIABLE ${name} = ${text}`)
}

/** Finds the folder's `lake.duckdb`; fails in clear words if there is none. */
function databaseOf(folder: string): string {
  const database = inLake(folder, places.database)
  if (isThere(database)) return database
  const started = isThere(inLake(folder, places.journal))
  throw usage(`lake ${folder}`, {
    expected: places.database,
    got: started ? 'a lake without it' : 'a folder without a lake',
    next: started ? 'run `pitlake views`' : 'run `pitlake fetch`, or name the folder with --data',
  })
}

async function open(
  database: string,
  folder: string,
  options: SessionOptions & { readonly takes?: string },
  readOnly: boolean,
): Promise<Engine> {
  try {
    return await Engine.open(database, {
      readOnly,
      keepFiles: true,
      ...(options.threads === undefined ? {} : { threads: options.threads }),
      memoryLimit: options.memoryLimit ?? engineMemory(1 / 2),
      spillLimit: options.spillLimit,
      takes: options.takes,
    })
  } catch (cause) {
    const words = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause)
    if (/memory|threads/i.test(words) && !/file/i.test(words))
      throw refusal(cause, { statement: '', script: '', offset: 0, folder })
    throw strangeViews(folder, `a ${places.database} that DuckDB can open`, words, cause)
  }
}

/**
 * Reads the folder that the views were made for; undefined if they do not show it. Views name files by their full path:
 * those of a moved lake find nothing, those of a copied one read the original.
 */
async function builtFolder(engine: Engine, folder: string): Promise<string | undefined> {
  const views = await engine.rows(
    `SELECT 1 AS found FROM system.main.duckdb_views() AS v WHERE v.view_name = 'lake_info' AND NOT v.internal`,
  )
  if (views.length === 0) return undefined
  const built = await reportedFolder(engine)
  if (built === undefined) return undefined
  if (isThere(built) && realPath(built) === realPath(folder)) return built
  throw usage(`lake ${folder}`, {
    expected: 'views over the files of this folder',
    got: `views made for ${built}`,
    next: 'the lake was moved or copied: run `pitlake views`',
  })
}

/**
 * Reads the folder that `lake_info` reports; it looks for the database there, which a session in a different folder may
 * not do.
 */
async function reportedFolder(engine: Engine): Promise<string | undefined> {
  try {
    const { text } = await admit(engine, 'SELECT folder FROM lake_info')
    const [row] = await engine.rows(text)
    const built = row?.['folder']
    return typeof built === 'string' ? built : undefined
  } catch (error) {
    const words = error instanceof Error ? error.message : ''
    const [, elsewhere] = /^Permission Error: Cannot access file "(.+)\/lake\.duckdb"/.exec(words) ?? []
    if (elsewhere === undefined) throw error
    return plainPath(elsewhere)
  }
}

/**
 * Refuses macros with the name of a function of the engine: they would replace it in every query, this program's
 * included.
 */
async function refuseShadows(engine: Engine, folder: string): Promise<void> {
  const [shadow] = await engine.rows<{ name: string }>(
    `SELECT f.function_name AS name FROM system.main.duckdb_functions() AS f
     GROUP BY 1 HAVING bool_or(f.internal) AND NOT bool_and(f.internal) LIMIT 1`,
  )
  if (shadow === undefined) return
  throw strangeViews(folder, `a ${places.database} that pitlake made`, `one with a function ${shadow.name} of its own`)
}

/**
 * Checks the statements of a stored `lake.sql`: views and macros are made, settings are left as they are, all else is
 * refused. Each alone is one statement to the engine, too; so they remain the same when they run in one go, which is
 * much faster.
 */
async function viewStatements(engine: Engine, script: string, commented: boolean): Promise<readonly string[]> {
  const makers: string[] = []
  for (const { text } of statementsOf(script)) {
    const words = openingWords(text, 4).join(' ')
    if (words.startsWith('SET ') || (!commented && words.startsWith('COMMENT ON '))) continue
    const makes = /^(?:COMMENT ON|CREATE (?:OR REPLACE )?(?:SCHEMA|VIEW|MACRO)) /.test(`${words} `)
    if (!makes || (await engine.parse(text)) !== 1) throw refusalOf(words.split(' ')[0] ?? '')
    makers.push(text)
  }
  return makers
}

/** Makes as many views as possible if some files are missing: a query that needs one of the skipped views fails. */
async function runEach(engine: Engine, statements: readonly string[]): Promise<void> {
  for (const text of statements) {
    try {
      await engine.run(text)
    } catch (error) {
      requireFileError(error, `opening ${places.script}`)
      const isOfGone = error instanceof Error && error.message.startsWith('IO Error')
      // A comment on a view that was left out.
      const isComment = openingWords(text, 2).join(' ') === 'COMMENT ON'
      if (!isOfGone && !isComment) throw error
    }
  }
}

/**
 * Sets what the options name in a session; a further session of the same engine has variables of its own. The names of
 * variables are in lower case (`readVariables`).
 */
export async function setVariables(engine: Engine, options: QueryOptions): Promise<void> {
  if (options.asOf !== undefined) await setMoment(engine, 'as_of', options.asOf)
  if (options.observedAsOf !== undefined) await setMoment(engine, 'observed_as_of', options.observedAsOf)
  if (options.backfill !== undefined) await engine.run(`SET VARIABLE backfill = ${quote(options.backfill)}`)
  if (options.registryBackfill !== undefined) {
    await engine.run(`SET VARIABLE registry_backfill = ${options.registryBackfill}`)
  }
  for (const [name, value] of Object.entries(options.set ?? {})) await setVariable(engine, name, value)
}

async function setVariable(engine: Engine, name: string, value: VariableValue): Promise<void> {
  if (!/^[A-Za-z_]\w*$/.test(name)) {
    throw usage('--set', { expected: 'the name of a variable, letters, digits and _', got: `"${name}"` })
  }
  if (name === 'as_of' || name === 'observed_as_of') {
    return setMoment(engine, name, value === null ? undefined : String(value))
  }
  await engine.run(`SET VARIABLE ${quoteName(name)} = ${literal(value)}`)
}

/**
 * Locks a session: from then on statements see the files of these folders, can write only spill files, and change no
 * setting.
 */
async function lock(engine: Engine, seen: ReadonlySet<string>): Promise<void> {
  // A path with the signs of a pattern is in the views as a pattern that means just this path.
  const folders = [...seen].flatMap((path) => [`${path}/`, `${literalPath(path)}/`])
  await engine.run(`SET allow_persistent_secrets = false`)
  await engine.run(`SET allowed_directories = ${quoteList([...new Set(folders)])}`)
  await engine.run(`SET enable_external_access = false`)
  await engine.run(`SET lock_configuration = true`)
}

/** Runs work on a session with a different `as_of`, or none, and then restores it; `subject` is what named it. */
export async function withAsOf<T>(engine: Engine, at: Moment | undefined, work: () => Promise<T>, subject?: string) {
  const [before] = await engine.rows<{ was: string | null; type: string }>(
    `SELECT getvariable('as_of')::VARCHAR AS was, typeof(getvariable('as_of')) AS type`,
  )
  const was = before?.was ?? null
  const restore = async (): Promise<void> => {
    if (was === null) await setMoment(engine, 'as_of', undefined)
    else await engine.run(`SET VARIABLE as_of = $1::${before?.type ?? 'VARCHAR'}`, [was])
  }
  const answer = async (): Promise<T> => {
    await setMoment(engine, 'as_of', at, subject)
    return await work()
  }
  return await withCleanup(answer, restore)
}
