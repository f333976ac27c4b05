import type { Micros } from '../../base/time.ts'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { isThere } from '../store/files.ts'
import { cleanUpAfterError } from '../../base/cleanup.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { applyEntry, applyFacts, setMeta } from './apply.ts'
import { isBegun, refuseStranger } from '../store/new-lake.ts'
import { readCheckpoint } from './checkpoint.ts'
import {
  busyMilliseconds,
  damagedIndexError,
  explain,
  metaLeft,
  openDatabase,
  removeDatabase,
  removeUnfinished,
  replaceDatabase,
  rebuildPath,
} from '../store/database.ts'
import { isWritable, realDisk } from '../store/disk.ts'
import { createTableSql, ledgerTables } from './columns.ts'
import { decodeEntry, type Provider, providerFields, sha256 } from './entry.ts'
import { entriesAfter, type Listing, listJournal, onJournal, readEntry, type Sealed } from './journal.ts'
import { entryFile, inLake, places } from '../store/layout.ts'
import { type Index, type IndexCell, type IndexRow, parseCell, checkedValue, type Statement } from './index-rows.ts'
import { real, shape, text, type ValueCheck, wholeNumber } from '../../base/value-checks.ts'
import { forceFacts, type PlacedFacts, readFacts } from './run-facts.ts'
import { textsIn } from '../store/sql.ts'
import { takeStamps } from './stamps.ts'

const statementFolder = new URL('sql/', import.meta.url)
let knownStatements: readonly string[] | undefined

/** Returns the statements that create the tables of the index. */
function indexStatements(): readonly string[] {
  const declared = Object.entries(ledgerTables).map(([name, table]) => createTableSql(name, table))
  return (knownStatements ??= [...declared, ...textsIn(statementFolder).map(([, text]) => text)])
}

/** Computes a number for the shape of the index; an index of a different shape is rebuilt from the journal. */
export function indexShape(): number {
  const statements = indexStatements().map((text) => text.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim())
  return Number.parseInt(sha256(statements.join('\n')).slice(0, 12), 16)
}

/** The newest version in the index. */
export interface Head {
  /** Identity of the lake; null until the first commit. */
  readonly lake: string | null
  /** 0 until the first commit. */
  readonly version: number
  /** SHA-256 of the newest entry; null until the first commit. */
  readonly digest: string | null
  /** Microseconds; 0 until the first commit. */
  readonly committed_at: Micros
  /** The provider whose answers are stored; null until the first commit. */
  readonly provider: Provider | null
}

/** The index over the journal. Everything in it can be made again from `journal/`, `runs/` and `stamps/`. */
export class Ledger implements Index {
  readonly root: string
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, Statement>()

  private constructor(root: string, database: DatabaseSync) {
    this.root = root
    this.#database = database
  }

  /** Opens the lake in a folder, creates an empty one if there is none, and catches up with the journal. */
  static async open(root: string): Promise<Ledger> {
    try {
      const path = inLake(root, places.ledger)
      await mayBegin(root, path)
      const ledger = new Ledger(root, openDatabase(path))
      return await ledger.#ready()
    } catch (error) {
      throw explain(error, `lake ${root}`, inLake(root, places.ledger))
    }
  }

  /**
   * Opens a lake for reading, also while a job writes to it. If the folder is not writable, the index is read in its
   * present state, or built in memory if it lags behind the journal.
   */
  static async openToRead(root: string): Promise<Ledger> {
    if (!isBegun(root)) throw noLake(root)
    if (isWritable(root)) return await Ledger.open(root)
    const ledger = Ledger.glance(root)
    if (ledger !== undefined) {
      const { newest } = await ledger.#closeOnError(async () => await listJournal(root))
      if (ledger.head().version === newest) return ledger
      ledger.close()
    }
    return await Ledger.inMemory(root)
  }

  /**
   * Opens the index in its present state for a quick look: without writing, catching up or reporting errors; undefined
   * if there is no usable index.
   */
  static glance(root: string): Ledger | undefined {
    const open = (ways: Readonly<Record<string, string>>): Ledger | undefined =>
      Ledger.#ifSound(root, (path) => {
        const url = pathToFileURL(path)
        for (const [name, value] of Object.entries(ways)) url.searchParams.set(name, value)
        return new DatabaseSync(url, { readOnly: true })
      })
    if (isWritable(root)) return open({})
    // A process that writes from elsewhere has its log next to the index; the index file alone may be between two
    // versions.
    const log = inLake(root, `${places.ledger}-wal`)
    return (isThere(log) ? open({}) : undefined) ?? open({ immutable: '1' })
  }

  /** Builds an index in memory from the journal alone (up to a version, if one is given). */
  static async inMemory(root: string, until: number = Number.POSITIVE_INFINITY): Promise<Ledger> {
    const ledger = new Ledger(root, new DatabaseSync(':memory:'))
    await ledger.#closeOnError(async () => {
      ledger.#createTables()
      await ledger.catchUp(until)
    })
    return ledger
  }

  /**
   * Opens the index as it was left, without checks and without catching up; undefined if it cannot be read. For repairs
   * of a lake that cannot be opened.
   */
  static asLeft(root: string): Ledger | undefined {
    const open = (path: string): DatabaseSync => new DatabaseSync(path, { timeout: busyMilliseconds })
    return Ledger.#ifSound(root, open, (ledger) => {
      return ledger.statement('PRAGMA quick_check(1)').get()?.['quick_check'] === 'ok'
    })
  }

  /** Opens the index if it is undamaged and has this program's shape; undefined otherwise. */
  static #ifSound(
    root: string,
    open: (path: string) => DatabaseSync,
    isWhole: (ledger: Ledger) => boolean = () => true,
  ): Ledger | undefined {
    const path = inLake(root, places.ledger)
    let database: DatabaseSync | undefined
    try {
      database = isThere(path) ? open(path) : undefined
      const ledger = database && new Ledger(root, database)
      const hasOwnShape =
        ledger && isWhole(ledger) && ledger.#hasTables() && ledger.#told()('schema', real) === indexShape()
      if (hasOwnShape && ledger.head().version >= 0) return ledger
    } catch {
      // A file that SQLite cannot read is not an index; code that needs one finds the cause, or rebuilds it.
    }
    database?.close()
    return undefined
  }

  /**
   * Rebuilds the index from the journal and puts it in place of the old one. Several processes that open a lake of a
   * different shape may do so at once: each builds its own, and a process that finds the new shape in place discards
   * its own (`unless`). Without `unless` hold the commit lock.
   */
  static async rebuild(root: string, unless?: (path: string) => boolean): Promise<Ledger> {
    const path = inLake(root, places.ledger)
    if (!unless) removeUnfinished(path)
    const fresh = rebuildPath(path)
    let ledger: Ledger | undefined
    try {
      ledger = new Ledger(root, openDatabase(fresh))
      ledger.#createTables()
      await ledger.catchUp()
      ledger.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE')
      ledger.close()
      await realDisk.sync(fresh)
      if (unless?.(path) === true) removeDatabase(fresh)
      else replaceDatabase(fresh, path)
    } catch (error) {
      // Explained first: once the new index is removed, a full disk looks as if it had room.
      const explained = explain(error, 'rebuilding the ledger', path)
      await cleanUpAfterError(() => {
        ledger?.close()
        removeDatabase(fresh)
      })
      throw explained
    }
    return Ledger.open(root)
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  statement(sql: string): Statement {
    const prepared = this.#statements.get(sql)
    if (prepared) return prepared
    // node:sqlite declares parameters and rows more loosely than the columns of this index are.
    const statement = this.#database.prepare(sql) as unknown as Statement
    this.#statements.set(sql, statement)
    return statement
  }

  /** Runs changes to the index in one transaction: all or none of them apply. */
  transaction(work: () => void): void {
    this.exec('BEGIN IMMEDIATE')
    try {
      work()
      this.exec('COMMIT')
    } catch (error) {
      this.rollBack()
      throw error
    }
  }

  rollBack(): void {
    // On a full disk SQLite has rolled back already: a second time is an error, which would replace the first.
    if (this.#database.isTransaction) this.exec('ROLLBACK')
  }

  /** Returns the newest version in the index. */
  head(): Head {
    const readMeta = this.#told()
    return {
      lake: readMeta('lake', text) ?? null,
      version: readMeta('version', wholeNumber) ?? 0,
      digest: readMeta('digest', text) ?? null,
      committed_at: readMeta('committed_at', wholeNumber) ?? 0,
      provider: readMeta('provider', shape(providerFields)) ?? null,
    }
  }

  /** Applies the entries and run lines that the index lacks, each version in one transaction. */
  async catchUp(until: number = Number.POSITIVE_INFINITY, sealedEntry?: Sealed): Promise<Head> {
    // Read before the folder is listed: another job may commit meanwhile, and update the index.
    const { version: seen } = this.head()
    return await onJournal(this.root, async (listed) => {
      if (seen > listed.newest) throw ahead(seen, listed.newest)
      return await this.#follow(listed, Math.min(listed.newest, until), sealedEntry)
    })
  }

  async #follow({ entries, checkpoints }: Listing, goal: number, sealedEntry: Sealed | undefined): Promise<Head> {
    await this.#startFromCheckpoint(goal, entries, checkpoints)
    const head = this.head()
    // A killed commit may not have forced its entry's name to the disk: the index must not outlive it in a power cut.
    if (goal > head.version) await realDisk.syncFolder(inLake(this.root, places.journal))
    const pending = await readFacts(this.root, (name) => this.#runOffset(name))
    // The same applies to lines of runs.
    if (this.#isKept()) await forceFacts(realDisk, this.root, pending)
    let next = this.#applyLines(pending, 0, head.version)
    const follows = sealedEntry?.entry.version === head.version + 1 && sealedEntry.entry.previous === head.digest
    for await (const sealed of follows ? [sealedEntry] : entriesAfter(this.root, head.version, head.digest, goal)) {
      this.transaction(() => {
        if (this.head().version === sealed.entry.version - 1) this.#apply(sealed)
      })
      next = this.#applyLines(pending, next, sealed.entry.version)
    }
    const reached = this.head()
    if (reached.version < goal) throw ahead(goal, reached.version)
    await takeStamps(this, this.root, reached)
    return this.head()
  }

  /** Applies an entry's text as it will be read, and reverts it, so that an entry which fails is not committed. */
  rehearse(text: string, name: string): Sealed {
    const sealed = decodeEntry(text, name)
    this.exec('BEGIN IMMEDIATE')
    try {
      this.#apply(sealed)
      return sealed
    } finally {
      this.rollBack()
    }
  }

  /** Applies an entry; a failure of the disk is reported as such, any other failure as the entry's. */
  #apply(sealed: Sealed): void {
    try {
      applyEntry(this, sealed)
    } catch (error) {
      const result = ((error as { errcode?: number }).errcode ?? 0) & 0xff
      if (error instanceof LakeError || [5, 8, 10, 11, 13, 14].includes(result)) throw error
      throw new LakeError('integrity', {
        subject: `journal entry ${entryFile(sealed.entry.version)} cannot be applied`,
        got: error instanceof Error ? error.message : String(error),
        next: 'run pitlake doctor',
        cause: error,
      })
    }
  }

  #applyLines(pending: readonly PlacedFacts[], from: number, version: number): number {
    let next = from
    while ((pending[next]?.line.after ?? Number.POSITIVE_INFINITY) <= version) next++
    if (next > from)
      this.transaction(() => {
        for (const placed of pending.slice(from, next))
          if (placed.end > this.#runOffset(placed.name)) applyFacts(this, placed)
      })
    return next
  }

  /** Whether the index lies on the disk. */
  #isKept(): boolean {
    return this.#database.location() !== null
  }

  /** Returns the number of bytes of a run's file that the index has read. */
  #runOffset(name: string): number {
    return Number(this.statement('SELECT offset FROM run_files WHERE name = ?').get(name)?.['offset'] ?? 0)
  }

  /** Reads the facts about the index itself in one query, because another process may update it at any time. */
  #told(): <T>(key: string, check: ValueCheck<T>) => T | undefined {
    const cells = new Map(
      this.statement('SELECT key, value FROM meta')
        .all()
        .map(({ key, value }) => [key, value]),
    )
    return (key, check) => (cells.has(key) ? checkedValue(check, parseCell(cells.get(key), key), key) : undefined)
  }

  async #ready(): Promise<Ledger> {
    const hasOwnShape = await this.#closeOnError(async () => {
      const shape = this.#hasTables() ? this.#told()('schema', real) : undefined
      if (shape === undefined) this.#createTables()
      if (shape !== undefined && shape !== indexShape()) return false
      await this.#prove()
      return true
    })
    if (hasOwnShape) return this
    this.close()
    return await Ledger.rebuild(this.root, (path) => metaLeft(path, 'schema') === indexShape())
  }

  /** Runs work on an index that no caller has yet, and so no caller would close if the work failed. */
  async #closeOnError<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Checks that the newest entry in the index is still the one in the journal. */
  async #prove(): Promise<void> {
    const head = await this.catchUp()
    await onJournal(this.root, async ({ entries }) => {
      if (head.version === 0 || !entries.includes(head.version)) return
      const { digest } = await readEntry(this.root, head.version)
      if (digest !== head.digest) throw damagedIndexError('does not belong to the journal of this lake')
    })
  }

  /**
   * Starts from the newest checkpoint that the index lacks, because the entries and files of runs before it may be
   * gone. A damaged checkpoint is skipped while older ones or the entries themselves exist.
   */
  async #startFromCheckpoint(until: number, entries: readonly number[], checkpoints: readonly number[]): Promise<void> {
    const { version } = this.head()
    const folded = (entries[0] ?? Number.POSITIVE_INFINITY) > version + 1
    const usable = checkpoints.filter((checkpoint) => checkpoint > version && checkpoint <= until).toReversed()
    for (const checkpoint of usable) {
      try {
        return await readCheckpoint(this.root, checkpoint, this, () => {
          setMeta(this, 'schema', indexShape())
        })
      } catch (error) {
        if (folded && checkpoint === usable.at(-1)) throw error
      }
    }
  }

  #hasTables(): boolean {
    return this.statement("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").get() !== undefined
  }

  #createTables(): void {
    this.transaction(() => {
      for (const statement of indexStatements()) this.exec(statement)
      setMeta(this, 'schema', indexShape())
    })
  }

  /** Returns the names of the index's tables, sorted. */
  tables(): string[] {
    const rows = this.statement("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all()
    return rows.map((row) => String(row['name']))
  }

  /** Reads all rows of a table in the order of its key, so that equal lakes give equal rows. */
  rowsOf(table: string): Iterable<IndexRow> {
    return this.statement(this.#inOrder(table)).iterate()
  }

  /** Reads the cells of all rows as `rowsOf` does; arrays cost half of what records do. */
  cellsIn(table: string): Iterable<readonly IndexCell[]> {
    const statement = this.#database.prepare(this.#inOrder(table))
    statement.setReturnArrays(true)
    return statement.iterate() as Iterable<unknown> as Iterable<readonly IndexCell[]>
  }

  #inOrder(table: string): string {
    const columns = this.statement(`SELECT name, pk FROM pragma_table_info('${table}') ORDER BY pk, cid`).all()
    const key = columns.filter((column) => column['pk'] !== 0).map((column) => String(column['name']))
    return `SELECT * FROM ${table} ORDER BY ${key.join(', ')}`
  }
}

/** Builds the error about a folder in which no lake was begun. */
export function noLake(root: string): LakeError {
  return usage(`no lake in ${root}`, {
    next: 'run pitlake fetch to begin one, or name another folder with --data',
  })
}

function ahead(seenVersion: number, newest: number): LakeError {
  return new LakeError('integrity', {
    subject: 'journal',
    expected: `version ${seenVersion}, which the ledger has seen`,
    got: newest === 0 ? 'no entry' : `version ${newest} as the newest`,
    next: 'put the missing entries back from a copy, or run pitlake doctor',
  })
}

/**
 * Refuses a folder that is not a lake and may not become one; while another job begins a lake, the folder is checked
 * again.
 */
async function mayBegin(root: string, path: string, before?: string): Promise<void> {
  const begun = (await listJournal(root)).newest > 0
  const stands = isThere(path)
  if (!stands && begun) throw damagedIndexError('is missing')
  const seen = begun ? undefined : metaLeft(path, 'version')
  if (begun || (seen ?? 0) > 0) return
  try {
    await refuseStranger(root, seen === 0)
  } catch (error) {
    const state = `${stands} ${seen}`
    if (state === before) throw error
    await mayBegin(root, path, state)
  }
}
