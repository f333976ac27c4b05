import { closeSync, openSync, writeSync } from 'node:fs'
import type { Ticket } from './commit.ts'
import { type Engine, quote } from './engine.ts'
import { columnsOfTable, registryStatement } from './registry-sql.ts'
import type { Spool } from './sweep.ts'

const blockCharacters = 1 << 20

interface OpenFile {
  readonly file: string
  readonly handle: number
  block: string[]
  characters: number
  rows: number
  /** Characters of the longest line. */
  longest: number
}

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
      open = { file, handle: openSync(file, 'w'), block: [], characters: 0, rows: 0, longest: 0 }
      this.#files.set(name, open)
    }
    const line = JSON.stringify(row)
    open.block.push(line, '\n')
    open.characters += line.length
    open.rows++
    open.longest = Math.max(open.longest, line.length)
    if (open.characters >= blockCharacters) flush(open)
  }

  /** How many rows the file of this name has. */
  rows(name: string): number {
    return this.#files.get(name)?.rows ?? 0
  }

  /** Bytes that the longest line of this name takes at most. */
  longest(name: string): number {
    return (this.#files.get(name)?.longest ?? 0) * 3 + 2
  }

  /** The file of this name with everything written to it; undefined when nothing was added. */
  file(name: string): string | undefined {
    const open = this.#files.get(name)
    if (open) flush(open)
    return open?.file
  }

  close(): void {
    for (const open of this.#files.values()) {
      flush(open)
      closeSync(open.handle)
    }
    this.#files.clear()
  }
}

function flush(open: OpenFile): void {
  if (open.block.length > 0) writeSync(open.handle, open.block.join(''))
  open.block = []
  open.characters = 0
}

/** What all rows of a file have in common, by column: an instant in microseconds, a text, or null. */
export type Constants = Readonly<Record<string, number | string | null>>

/** Turns the lines of a registry table into Parquet; columns that no line names are NULL. */
export async function writeParquet(
  engine: Engine,
  job: {
    readonly table: string
    readonly lines: string
    /** Bytes of the longest line at most. */
    readonly longest: number
    readonly constants: Constants
    readonly order: readonly string[]
    readonly out: string
    readonly ticket: Ticket
  },
): Promise<void> {
  const columns = columnsOfTable(job.table)
  const constant = ([name, type]: readonly [string, string]): string | undefined => {
    const value = job.constants[name]
    if (value === undefined) return undefined
    if (value === null) return `CAST(NULL AS ${type}) AS "${name}"`
    return type === 'TIMESTAMPTZ'
      ? `make_timestamptz(${value}::BIGINT) AS "${name}"`
      : `CAST(${quote(String(value))} AS ${type}) AS "${name}"`
  }
  const select = columns.map((column) => constant(column) ?? `"${column[0]}"`)
  const types = columns.filter((column) => constant(column) === undefined).map(([name, type]) => `"${name}": '${type}'`)
  const { lake, version } = job.ticket
  await engine.run(
    registryStatement('write', {
      columns: select.join(', '),
      lines: quote(job.lines),
      types: `{${types.join(', ')}}`,
      longest: String(Math.max(1_000_000, job.longest)),
      order: job.order.length === 0 ? '' : `ORDER BY ${job.order.map((name) => `"${name}"`).join(', ')}`,
      out: quote(job.out),
      metadata: `{pitlake_lake: ${quote(lake)}, pitlake_version: '${version}', pitlake_schema: '1'}`,
    }),
  )
}
