import { footerOf, type Ticket } from '../../lake/ledger/draft.ts'
import type { Spool } from '../../lake/ledger/spool-sweep.ts'
import { type Engine, quote, quotePath } from '../../lake/store/engine.ts'
import { type BlockWriter, openBlocks } from '../../lake/store/files.ts'
import { footerSql } from '../../lake/store/parquet.ts'
import type { RegistryChange } from './bodies.ts'
import { type RegistryColumn, registryStatement } from './columns.ts'
import { type FoldedPoll, type HistoryStep, observeEvent, type Poll } from './history.ts'
import { textHash } from './record.ts'

const newline = 0x0a

/** Bytes that are written at once. */
const blockBytes = 1 << 18

interface OpenFile {
  /** Absolute path of the file. */
  readonly file: string
  readonly handle: BlockWriter
  /** Lines that are not written yet: its first `used` bytes. */
  readonly block: Buffer
  used: number
  /** Lines added. */
  rows: number
  /** Bytes added. */
  bytes: number
  /** Bytes of the longest line. */
  longest: number
}

/** Values that all rows of a file share, by column: a time in microseconds, a text, or null. */
export type Constants = Readonly<Record<string, number | string | null>>

/** Lines of JSON in the spool, one file per name; must be closed. */
export class Lines {
  readonly #spool: Spool
  readonly #files = new Map<string, OpenFile>()

  constructor(spool: Spool) {
    this.#spool = spool
  }

  /** Adds a row to the file of this name. */
  add(name: string, row: object): void {
    let open = this.#files.get(name)
    if (!open) {
      const file = this.#spool.file(`${name}.jsonl`)
      const block = Buffer.allocUnsafeSlow(blockBytes)
      open = { file, handle: openBlocks(file), block, used: 0, rows: 0, bytes: 0, longest: 0 }
      this.#files.set(name, open)
    }
    const bytes = append(open, JSON.stringify(row))
    open.rows++
    open.bytes += bytes
    if (bytes > open.longest) open.longest = bytes
  }

  /** Returns the number of rows and bytes of the file of this name. */
  size(name: string): Readonly<Pick<OpenFile, 'rows' | 'bytes'>> {
    return this.#files.get(name) ?? { rows: 0, bytes: 0 }
  }

  /**
   * Converts the file of this name to Parquet with these columns, some of which are computed by SQL (`made`); a column
   * that no line names is NULL. Returns false if no row was added.
   */
  async toParquet(
    engine: Engine,
    name: string,
    columns: readonly RegistryColumn[],
    { constants, made: computed = {}, out, ticket }: ParquetFile,
  ): Promise<boolean> {
    const open = this.#files.get(name)
    if (!open) return false
    flush(open)
    const values = columns.map((column) => computed[column[0]] ?? constant(column, constants))
    const select = columns.map(([name], i) => (values[i] === undefined ? `"${name}"` : `${values[i]} AS "${name}"`))
    const types = columns.flatMap(([name, type], i) => (values[i] === undefined ? [`"${name}": '${type}'`] : []))
    await engine.run(
      registryStatement('registry_file', {
        columns: select.join(', '),
        lines: quotePath(open.file),
        types: `{${types.join(', ')}}`,
        longest: String(Math.max(1_000_000, open.longest)),
        out: quote(out),
        metadata: footerSql(footerOf(ticket)),
      }),
    )
    return true
  }

  [Symbol.dispose](): void {
    for (const open of this.#files.values()) {
      flush(open)
      open.handle.close()
    }
    this.#files.clear()
  }
}

/** The Parquet file to make of a file of lines. */
interface ParquetFile {
  readonly constants: Constants
  readonly made?: Readonly<Record<string, string>> | undefined
  readonly out: string
  readonly ticket: Ticket
}

/** Writes a line to the block, or directly to the file if it is too long for one; returns its bytes. */
function append(open: OpenFile, line: string): number {
  // A character is at most three bytes of UTF-8.
  const most = line.length * 3 + 1
  if (most > blockBytes - open.used) flush(open)
  if (most > blockBytes) {
    const bytes = Buffer.from(`${line}\n`)
    open.handle.write(bytes)
    return bytes.length
  }
  const bytes = open.block.write(line, open.used)
  open.block[open.used + bytes] = newline
  open.used += bytes + 1
  return bytes + 1
}

function flush(open: OpenFile): void {
  open.handle.write(open.block.subarray(0, open.used))
  open.used = 0
}

function constant([name, type]: RegistryColumn, constants: Constants): string | undefined {
  const value = constants[name]
  if (value === undefined) return undefined
  if (value === null) return `CAST(NULL AS ${type})`
  return type === 'TIMESTAMPTZ' ? `make_timestamptz(${value}::BIGINT)` : `CAST(${quote(String(value))} AS ${type})`
}

/** The results of a poll so far, while its lines are written. */
export interface PollChange {
  /** Texts of the changed records, by resource and id; null for one that is gone. */
  readonly texts: Map<string, Map<string, string | null>>
  /** Growth of the number of open rows, by table. */
  readonly growth: Record<string, number>
  /** Versions of records, those that they embed not counted. */
  opened: number
  updated: number
  closed: number
}

/** Writes one step as a line of its history; the names of the files are those of the tables. */
export function writeStep(lines: Lines, change: PollChange, step: HistoryStep): void {
  const { table, id, op, text, child } = step
  lines.add(`history.${table}`, stepRow(step))
  change.growth[table] = (change.growth[table] ?? 0) + (op === null ? -1 : op === 'updated' ? 0 : 1)
  if (child) return
  note(change, table, id, text)
  if (op === null) change.closed++
  else if (op === 'updated') change.updated++
  else change.opened++
}

/** Writes the results of a poll other than its steps. */
export function writeFolded(lines: Lines, change: PollChange, { absorbed, newKeys, findings }: FoldedPoll): void {
  for (const { resource, id, text, hash } of absorbed) {
    note(change, resource, id, text)
    lines.add('absorbed', { resource, id, hash, record: text })
  }
  for (const key of newKeys) lines.add('schema_changes', key)
  for (const finding of findings) lines.add('registry_findings', finding)
}

function note({ texts }: PollChange, table: string, id: string, text: string | null): void {
  const textsOfTable = texts.get(table)
  if (textsOfTable) textsOfTable.set(id, text)
  else texts.set(table, new Map([[id, text]]))
}

function stepRow(step: HistoryStep): object {
  const { id, op, closedBy, inferred, source, hash, text, child, fields } = step
  const head = { id, op, closed_by: closedBy, inferred, source, hash, record: text }
  if (!child) return { ...head, ...fields }
  const { parent_type, parent_id, ordinal, content_hash } = child
  return { ...head, parent_type, parent_id, ordinal, content_hash }
}

/**
 * Builds a function that applies events to a poll and returns whether they are news; an event that repeats the last one
 * of its entity (`last`) is not written.
 */
export function eventTaker(poll: Poll, lines: Lines, last: Map<string, string>): (event: RegistryChange) => boolean {
  let position = 0
  return (event) => {
    const { type, resource, id, op, incoming, text } = event
    const name = `${type} ${id}`
    const hash = textHash(incoming ? incoming.hash : 'deleted')
    observeEvent(poll, event)
    if (last.get(name) === hash) return false
    last.set(name, hash)
    lines.add('events', { position: position++, entity_type: type, resource, entity_id: id, op, hash, event: text })
    return true
  }
}
