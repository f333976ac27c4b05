import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import {
  DuckDBArrayValue,
  DuckDBBlobValue,
  type DuckDBConnection,
  type DuckDBDataChunk,
  DuckDBDateValue,
  DuckDBInstance,
  DuckDBListValue,
  DuckDBMapValue,
  type DuckDBResult,
  type DuckDBResultReader,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  DuckDBTypeId,
  type DuckDBValue,
  StatementType,
} from '@duckdb/node-api'
import { cleanUpAfterError, withCleanup } from '../../base/cleanup.ts'
import { LakeError } from '../../base/errors.ts'
import { bindAll, type Parameters } from './sql.ts'
import { makeSpill, removeSpill, spillRoom } from './files.ts'
import { collectAll, collectYoung, engineMemory, leanSettings } from './memory.ts'

/** Maximum number of chunks (of at most 2,048 rows) that may be in memory in addition to what the engine counts. */
const bufferedChunks = 16
/** Most cells in these chunks: wide rows have fewer chunks. */
const bufferedCells = 2 ** 19

/** Options for opening an engine; DuckDB's own defaults apply to those left out. */
interface EngineOptions {
  readonly threads?: number
  /** Memory limit in DuckDB's spelling, `512MB`; by default everything that the process may give its engines. */
  readonly memoryLimit?: string | undefined
  /**
   * Folder for data that do not fit into memory; by default a private folder of its own, which is removed on closing.
   */
  readonly tempDirectory?: string
  /**
   * A private folder that it takes over, and removes when it is closed; otherwise it makes one of its own if it needs
   * one.
   */
  readonly takes?: string | undefined
  /** Maximum number of bytes on disk for data that do not fit into memory; by default a part of the free space. */
  readonly spillLimit?: number | undefined
  readonly readOnly?: boolean
  /** Whether the same unchanging Parquet files will be read repeatedly, so that their contents stay in memory. */
  readonly keepFiles?: boolean
}

/** A value of a result row: 64-bit and wider integers are bigint, instants are ISO text with microseconds. */
export type Cell =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | readonly Cell[]
  | { readonly [name: string]: Cell }
export type Row = Readonly<Record<string, Cell>>

/** One chunk of a streamed result, column by column. */
interface Chunk {
  readonly rows: number
  readonly columns: readonly (readonly Cell[])[]
}

/** DuckDB's numbers of its types: `column.type.typeId`. */
export const typeIds: typeof DuckDBTypeId = DuckDBTypeId

/** One column of a result: its name and DuckDB's own type. */
interface Column {
  readonly name: string
  readonly type: DuckDBType
}

/** The result of one statement as DuckDB's own vectors. */
export interface VectorStream {
  readonly columns: readonly Column[]
  /** The rows; each chunk is valid until the next one is read. */
  readonly chunks: AsyncGenerator<DuckDBDataChunk>
}

/**
 * The facts about one statement that are known without running it: its kind (`SELECT`, `COPY` …), and the columns of
 * its result, empty if they depend on its parameters.
 */
export interface Prepared {
  readonly kind: string
  readonly columns: readonly Column[]
}

/**
 * SQL that caches parsed footers and skips the check of files that were read before; this saves half of the cost of
 * opening a file.
 */
const keepSql = `SET GLOBAL parquet_metadata_cache = true; SET GLOBAL validate_external_file_cache = 'NO_VALIDATION'`

/** The extensions without which no lake can be read; they are linked into the official builds. */
const needed = ['core_functions', 'icu', 'json', 'parquet']

/** A DuckDB database with one connection; it never installs or loads an extension by itself, and its zone is UTC. */
export class Engine {
  readonly #instance: DuckDBInstance
  readonly #connection: DuckDBConnection
  readonly #owner: boolean
  /**
   * The private folder for data that do not fit into memory, if there is one; the engine that opened the database
   * removes it.
   */
  spill: string | undefined
  #closed = false
  #interrupted = false
  /** Sessions opened from this one, which are stopped with it. */
  readonly #sessions = new Set<Engine>()
  #forget: (() => void) | undefined

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection, owner: boolean) {
    this.#instance = instance
    this.#connection = connection
    this.#owner = owner
  }

  /** Opens a database file or `:memory:`. */
  static async open(path = ':memory:', options: EngineOptions = {}): Promise<Engine> {
    const settings: Record<string, string> = {
      ...leanSettings,
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      allow_community_extensions: 'false',
    }
    if (options.threads !== undefined) settings['threads'] = String(options.threads)
    if (options.readOnly === true) settings['access_mode'] = 'READ_ONLY'
    settings['memory_limit'] = options.memoryLimit ?? engineMemory()
    const spill = options.takes ?? (options.tempDirectory === undefined ? makeSpill() : undefined)
    const place = (settings['temp_directory'] = options.tempDirectory ?? join(spill ?? '', randomUUID()))
    let instance: DuckDBInstance | undefined
    try {
      instance = await DuckDBInstance.create(path, settings)
      const engine = await Engine.#connect(instance, true)
      engine.spill = spill
      await engine.#requireExtensions()
      // As a setting of the instance it is reported but ignored (DuckDB 2.0).
      await engine.run(`SET GLOBAL max_temp_directory_size = '${options.spillLimit ?? spillRoom(place)}B'`)
      if (options.keepFiles === true) await engine.run(keepSql)
      return engine
    } catch (error) {
      instance?.closeSync()
      removeSpill(spill)
      throw error
    }
  }

  /**
   * Opens a further connection to the same database, with temporary tables and variables of its own. Close it before
   * its origin.
   */
  async session(): Promise<Engine> {
    const session = await Engine.#connect(this.#instance, false)
    session.spill = this.spill
    this.#sessions.add(session)
    session.#forget = () => this.#sessions.delete(session)
    return session
  }

  /** Runs statements and returns how many rows the last one inserted, updated, deleted or copied; 0 for any other. */
  async run(sql: string, parameters?: Parameters): Promise<number> {
    const result = await this.#connection.run(sql, ...bindAll(parameters, bound))
    return result.rowsChanged
  }

  /** Identifies the database: one object for all its sessions, as long as it is open. */
  get database(): object {
    return this.#instance
  }

  /** Runs statements and returns all rows of the last one. */
  async rows<T extends Row = Row>(sql: string, parameters?: Parameters): Promise<T[]> {
    return rowsOf<T>(await this.#connection.runAndReadAll(sql, ...bindAll(parameters, bound)))
  }

  /**
   * Runs exactly one SELECT and returns its rows. A further statement, or one of a different kind, is an error. Its
   * transaction cannot write to any database, unless a transaction of the session is already under way.
   */
  async ask<T extends Row = Row>(sql: string, parameters?: Parameters): Promise<T[]> {
    const statements = await this.#connection.extractStatements(sql)
    if (statements.count !== 1) throw new RangeError(`expected one SELECT, got ${statements.count} statements`)
    const beganTransaction = await this.#begin('BEGIN TRANSACTION READ ONLY')
    const select = async (): Promise<T[]> => {
      const statement = await statements.prepare(0)
      try {
        if (statement.statementType !== StatementType.SELECT)
          throw new RangeError(`expected one SELECT, got ${StatementType[statement.statementType]}`)
        const [values] = bindAll(parameters, bound)
        if (values !== undefined) statement.bind(values)
        return rowsOf<T>(await statement.runAndReadAll())
      } finally {
        statement.destroySync()
      }
    }
    return beganTransaction ? await withCleanup(select, () => this.#rollback()) : await select()
  }

  /**
   * Runs one statement and hands its result on chunk by chunk, so that memory stays flat; `types` as DuckDB names them.
   */
  async stream(sql: string, parameters?: Parameters) {
    const { result, chunks } = await this.#streamed(sql, parameters)
    async function* columns(): AsyncGenerator<Chunk> {
      for await (const chunk of chunks)
        yield { rows: chunk.rowCount, columns: chunk.getColumns().map((values) => values.map(cell)) }
    }
    return { names: result.columnNames(), types: result.columnTypes().map(String), chunks: columns() }
  }

  /**
   * Runs one statement and streams its result as DuckDB's own vectors; each chunk is valid until the next one is
   * requested. A caller that creates few values from the cells can raise the number of cells (`cells`) after which
   * garbage is collected.
   */
  async vectors(sql: string, parameters?: Parameters, cells = bufferedCells): Promise<VectorStream> {
    const { result, chunks } = await this.#streamed(sql, parameters, cells)
    const types = result.columnTypes()
    return { columns: result.columnNames().map((name, i) => column(name, types[i])), chunks }
  }

  /**
   * Streams the result of a statement in a transaction of its own. Without it, a result that ends in an error would
   * look complete, because DuckDB's binding drops the error; the transaction shows it.
   */
  async #streamed(sql: string, parameters?: Parameters, most = bufferedCells) {
    const isOwnTransaction = !/^\s*(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT)\b/i.test(sql) && (await this.#begin())
    this.#interrupted = false
    try {
      const result = await this.#connection.stream(sql, ...bindAll(parameters, bound))
      return { result, chunks: this.#chunks(result, isOwnTransaction, sql, parameters, most) }
    } catch (error) {
      if (isOwnTransaction) await cleanUpAfterError(() => this.#rollback())
      throw error
    }
  }

  async *#chunks(
    result: DuckDBResult,
    isOwned: boolean,
    sql: string,
    parameters: Parameters | undefined,
    most: number,
  ): AsyncGenerator<DuckDBDataChunk> {
    let ended = false
    let failed = false
    let fetched = 0
    let cells = 0
    try {
      for (;;) {
        const chunk = await result.fetchChunk()
        if (!chunk || chunk.rowCount === 0) break
        // Only garbage collection frees a chunk, of which the collector sees only the handle.
        if (++fetched % (most > bufferedCells ? 4 * bufferedChunks : bufferedChunks) === 0) collectYoung()
        cells += chunk.rowCount * chunk.columnCount
        if (cells > most) {
          collectAll()
          cells = 0
        }
        yield chunk
      }
      ended = !this.#interrupted && (await this.#holds())
    } catch (error) {
      failed = true
      throw error
    } finally {
      const end = async (): Promise<unknown> => await (ended ? this.run('COMMIT') : this.#rollback())
      if (isOwned && !this.#closed) await (failed ? cleanUpAfterError(end) : end())
    }
    if (ended) return
    if (this.#interrupted) throw new Error('INTERRUPT Error: Interrupted!')
    // Run once more, only for its error message.
    if (isOwned) await this.run(`EXPLAIN ANALYZE ${sql}`, parameters)
    throw new Error('the query failed before its last row')
  }

  /** Begins a transaction; false if one is open already, which two statements with the same transaction id show. */
  async #begin(begin = 'BEGIN TRANSACTION'): Promise<boolean> {
    const id = async (): Promise<unknown> => (await this.rows('SELECT system.main.txid_current() AS id'))[0]?.['id']
    if ((await id()) === (await id())) return false
    await this.run(begin)
    return true
  }

  /**
   * Rolls back; a repeated cancel may hit this statement instead of the intended one, so a failure is tried once more.
   */
  async #rollback(): Promise<void> {
    await this.run('ROLLBACK').catch(() => this.run('ROLLBACK'))
  }

  /** Whether nothing went wrong in the transaction. */
  async #holds(): Promise<boolean> {
    try {
      await this.run('SELECT 1')
      return true
    } catch {
      return false
    }
  }

  /** Reads one statement with DuckDB's own parser and binder and runs nothing. */
  async prepared(sql: string): Promise<Prepared> {
    const statements = await this.#connection.extractStatements(sql)
    if (statements.count !== 1) throw new RangeError(`one statement was to be read, not ${statements.count}`)
    const statement = await statements.prepare(0)
    try {
      const places = Array.from({ length: statement.columnCount }, (_, i) => i)
      // Without its parameters the types of a statement may be unknown.
      const areTypesKnown = places.every((i) => statement.columnTypeId(i) !== DuckDBTypeId.INVALID)
      const columns = areTypesKnown ? places.map((i) => column(statement.columnName(i), statement.columnType(i))) : []
      return { kind: StatementType[statement.statementType], columns }
    } finally {
      statement.destroySync()
    }
  }

  /** Counts the statements in a text with DuckDB's own parser; nothing is bound and nothing runs. */
  async parse(sql: string): Promise<number> {
    return (await this.#connection.extractStatements(sql)).count
  }

  /**
   * Adds the rows of a stream to a temporary table; the engine casts values whose column in the table has another type.
   * It holds `buffered` chunks in addition to what the table may spill.
   */
  async append(table: string, { chunks }: VectorStream, buffered = bufferedChunks): Promise<number> {
    const appender = await this.#connection.createAppender(table, 'main', 'temp')
    let rows = 0
    let waiting = 0
    const appendAll = async (): Promise<void> => {
      for await (const chunk of chunks) {
        appender.appendDataChunk(chunk)
        rows += chunk.rowCount
        // Without a flush it keeps a hundred chunks in addition to those that the table spills.
        if (++waiting % buffered === 0) appender.flushSync()
      }
    }
    await withCleanup(appendAll, () => appender.closeSync())
    return rows
  }

  /**
   * Stops the running statements on this connection and on the sessions opened from it; they fail with DuckDB's own
   * message.
   */
  interrupt(): void {
    this.#interrupted = true
    this.#connection.interrupt()
    for (const session of this.#sessions) session.interrupt()
  }

  /** Disconnects; the engine that opened the database also closes it. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#forget?.()
    this.#connection.closeSync()
    if (this.#owner) this.#instance.closeSync()
    if (this.#owner) removeSpill(this.spill)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  static async #connect(instance: DuckDBInstance, owner: boolean): Promise<Engine> {
    const engine = new Engine(instance, await instance.connect(), owner)
    // Global, so that later sessions get it even if the settings are locked by then.
    if (owner) await engine.run(`SET GLOBAL TimeZone = 'UTC'`)
    return engine
  }

  async #requireExtensions(): Promise<void> {
    const loaded = await this.rows('SELECT extension_name AS name FROM system.main.duckdb_extensions() WHERE loaded')
    const names = new Set(loaded.map((row) => row['name']))
    const missing = needed.filter((name) => !names.has(name))
    if (missing.length === 0) return
    throw new LakeError('usage', {
      subject: 'DuckDB',
      expected: `a build with the extensions ${needed.join(', ')}`,
      got: `one without ${missing.join(', ')}`,
      next: 'reinstall @duckdb/node-api with its official bindings for this platform',
    })
  }
}

/** Quotes a text as an SQL string literal. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** Quotes a name as an SQL identifier. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Whether two names mean one column or relation: SQL ignores the case of ASCII letters. */
export function isSameName(name: string, otherName: string): boolean {
  return lowerName(name) === lowerName(otherName)
}

/** Converts the ASCII letters of a name to lower case, so that names which SQL does not distinguish are equal. */
export function lowerName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** Formats texts as an SQL list of VARCHAR. */
export function quoteList(texts: readonly string[]): string {
  return `CAST([${texts.map(quote).join(', ')}] AS VARCHAR[])`
}

/** Escapes in a path what DuckDB would take for a pattern. */
export function literalPath(path: string): string {
  return path.replaceAll(/[*?[]/g, (character) => `[${character}]`)
}

/** Formats the path of a file to read as an SQL literal: DuckDB would read one with `*`, `?` or `[` as a pattern. */
export function quotePath(path: string): string {
  return quote(literalPath(path))
}

/** Formats paths of files to read as an SQL list of VARCHAR. */
export function quotePaths(paths: readonly string[]): string {
  return quoteList(paths.map(literalPath))
}

/** Returns the path that was passed to `literalPath`. */
export function plainPath(literal: string): string {
  return literal.replaceAll(/\[([*?[])\]/g, '$1')
}

function rowsOf<T extends Row>(result: DuckDBResultReader): T[] {
  return result
    .getRowObjects()
    .map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cell(value)])) as T)
}

function column(name: string, type: DuckDBType | undefined): Column {
  if (type === undefined) throw new Error(`column ${name} has no type`)
  return { name, type }
}

function bound(value: DuckDBValue | Date): DuckDBValue {
  return value instanceof Date ? new DuckDBTimestampTZValue(BigInt(value.getTime()) * 1000n) : value
}

/** Converts a DuckDB value to plain data without loss: a value without an exact form in JavaScript becomes text. */
export function cell(value: DuckDBValue): Cell {
  if (value === null || typeof value !== 'object') return value
  if (value instanceof DuckDBTimestampTZValue) return isoMicros(value.micros, 'Z')
  if (value instanceof DuckDBTimestampValue) return isoMicros(value.micros, '')
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) return value.items.map(cell)
  if (value instanceof DuckDBStructValue) return record(Object.entries(value.entries))
  if (value instanceof DuckDBMapValue)
    return value.entries.map(({ key, value: entryValue }) => ({ key: cell(key), value: cell(entryValue) }))
  if (value instanceof DuckDBBlobValue) return new Uint8Array(value.bytes)
  if (value instanceof DuckDBDateValue) return value.toString()
  return String(value)
}

function record(entries: readonly (readonly [string, DuckDBValue])[]): { readonly [name: string]: Cell } {
  return Object.fromEntries(entries.map(([name, field]) => [name, cell(field)]))
}

const farthest = 8_640_000_000_000_000_000n

/** Formats microseconds as `2024-03-01T00:00:00.000001Z`; DuckDB's two infinities as `infinity` and `-infinity`. */
function isoMicros(micros: bigint, zone: string): string {
  if (micros >= 9_223_372_036_854_775_807n) return 'infinity'
  if (micros <= -9_223_372_036_854_775_807n) return '-infinity'
  if (micros > farthest || micros < -farthest) return `${micros}us`
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n
  const seconds = Number((micros - fraction) / 1_000_000n)
  const wholeSeconds = new Date(seconds * 1000).toISOString().slice(0, -5)
  return `${wholeSeconds}.${String(fraction).padStart(6, '0')}${zone}`
}

/** Whether all views and macros of a database can be read; a power cut may have damaged it. */
export async function readsWell(database: string): Promise<boolean> {
  try {
    using engine = await Engine.open(database, { threads: 1, readOnly: true })
    await engine.rows('SELECT count(sql) FROM duckdb_views()')
    await engine.rows('SELECT count(macro_definition) FROM duckdb_functions()')
    return true
  } catch {
    return false
  }
}
