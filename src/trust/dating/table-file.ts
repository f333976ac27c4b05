import { machineLack } from '../../lake/store/file-errors.ts'
import { usage } from '../../base/errors.ts'
import { decompressionSql, proveWhole } from '../../lake/store/compressed-files.ts'
import { Engine, quoteName, quotePath } from '../../lake/store/engine.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { utcSql } from '../../query/views/template.ts'
import type { CellValue } from './value-matcher.ts'

/** Column of the file of a table. */
export interface FileColumn {
  readonly name: string
  /** Type as DuckDB names it. Each column of a CSV file is VARCHAR. */
  readonly type: string
}

/** How values of a column are compared: as numbers, instants, texts, or as the words of a list. */
export type ComparedAs = 'number' | 'time' | 'text' | 'words'

/** Column to read, and how. */
export interface ReadColumn {
  readonly name: string
  readonly as: ComparedAs
}

/** Endings of the names of files that can be dated. */
const parquetEndings = /\.(?:parquet|parq|pq)$/i
const csvEndings = /\.(?:csv|tsv|txt)(?:\.gz|\.zst)?$/i

/** Open file with a table. */
export class TableFile implements Disposable {
  readonly columns: readonly FileColumn[]
  readonly #engine: Engine
  readonly #relation: string
  readonly #subject: string

  private constructor(engine: Engine, relation: string, subject: string, columns: readonly FileColumn[]) {
    this.#engine = engine
    this.#relation = relation
    this.#subject = subject
    this.columns = columns
  }

  /** Opens a CSV or Parquet file; `subject` names it in errors. */
  static async open(path: string, subject = path): Promise<TableFile> {
    const relation = relationOf(path, subject)
    const engine = await Engine.open(':memory:')
    try {
      await proveWhole(path)
      return new TableFile(engine, relation, subject, await columnsOf(engine, relation))
    } catch (cause) {
      engine.close()
      throw unreadable(subject, cause)
    }
  }

  [Symbol.dispose](): void {
    this.#engine.close()
  }

  /** Reads columns, row by row in their order. An instant is in microseconds, -Infinity or Infinity. */
  async *rows(columns: readonly ReadColumn[]): AsyncGenerator<readonly CellValue[]> {
    const types = new Map(this.columns.map(({ name, type }) => [name, type]))
    const list = columns.map(({ name, as }) => comparedSql(quoteName(name), types.get(name) ?? 'VARCHAR', as))
    try {
      const { chunks } = await this.#engine.stream(`SELECT ${list.join(', ')} FROM ${this.#relation}`)
      for await (const { rows, columns: values } of chunks) {
        for (let row = 0; row < rows; row++)
          yield columns.map(({ as }, n) => comparedValue(values[n]?.[row] ?? null, as))
      }
    } catch (cause) {
      throw unreadable(this.#subject, cause)
    }
  }
}

function relationOf(path: string, subject: string): string {
  const file = `${quotePath(path)}, hive_partitioning = false`
  if (parquetEndings.test(path)) return `read_parquet(${file})`
  if (csvEndings.test(path)) return `read_csv(${file}, header = true, all_varchar = true${decompressionSql(path)})`
  throw usage(subject, { expected: 'a file that ends in .csv, .csv.gz, .csv.zst or .parquet', got: 'another name' })
}

function unreadable(subject: string, cause: unknown): Error {
  const lack = machineLack(cause, `reading ${subject}`)
  if (lack !== undefined) return lack
  const got = (cause instanceof Error ? cause.message : String(cause)).split('\n')[0] ?? ''
  return usage(subject, { expected: 'a CSV or Parquet file that can be read', got, cause })
}

const numericType = /^(?:U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*)$/

/** Whether a type of DuckDB is a number. */
export function isNumericType(type: string): boolean {
  return numericType.test(type)
}

/** Decides how values of a type of the lake are compared. */
export function comparedAs(type: string): ComparedAs {
  if (isNumericType(type)) return 'number'
  if (/^(?:TIMESTAMP|DATE)/.test(type)) return 'time'
  return /\[\]$|^(?:STRUCT|MAP|JSON)/.test(type) ? 'words' : 'text'
}

/** Builds the SQL that brings a value into the form in which values are compared. */
export function comparedSql(column: string, type: string, as: ComparedAs): string {
  const text = `CAST(${column} AS VARCHAR)`
  switch (as) {
    case 'number':
      return isNumericType(type) ? `CAST(${column} AS DOUBLE)` : text
    case 'time':
      return instantSql(type === 'VARCHAR' ? `nullif(${column}, '')` : column)
    case 'words':
      return `trim(regexp_replace(${text}, '[^A-Za-z0-9_.:-]+', ' ', 'g'))`
    case 'text':
      return text
  }
}

/** Builds the SQL of an instant in microseconds, as a number. */
function instantSql(column: string): string {
  const at = `(${utcSql(column)})`
  return `CASE WHEN ${at} = TIMESTAMPTZ 'infinity' THEN CAST('inf' AS DOUBLE)
    WHEN ${at} = TIMESTAMPTZ '-infinity' THEN CAST('-inf' AS DOUBLE) ELSE CAST(epoch_us(${at}) AS DOUBLE) END`
}

/** Texts that programs write in a CSV file where a value is missing. */
const missingTexts = new Set(['', 'null', 'none', 'nan', 'na', 'n/a', '<na>', 'nat'])
const numberText = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i

/** Converts a value that was read into one that can be compared. */
export function comparedValue(value: unknown, as: ComparedAs): CellValue {
  if (typeof value === 'number') return Number.isNaN(value) ? null : value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return null
  const text = value.trim()
  if (missingTexts.has(text.toLowerCase())) return null
  if (as === 'number' && numberText.test(text)) return Number(text)
  return /^(?:true|false)$/i.test(text) ? text.toLowerCase() : text
}
