import { rename, rm, stat } from 'node:fs/promises'
import { type Engine, quote } from './engine.ts'
import type { FileEntry } from './entry.ts'
import { mergeSql } from './merge-sql.ts'

/** How the columns of a file are written. */
export interface Encoding {
  readonly version: 'v1' | 'v2'
  /** The most distinct values of a column that get a dictionary; above a few, time columns lose their delta encoding. */
  readonly dictionary: number
}

/** Where rows come from and in which order they are written. */
export interface Rows {
  /** A relation for FROM. */
  readonly source: string
  /** `ORDER BY …`, or '' for rows that are in order. */
  readonly order: string
}

const usual: Encoding = { version: 'v2', dictionary: 1000 }
const tried: readonly Encoding[] = [usual, { version: 'v2', dictionary: 0 }, { version: 'v1', dictionary: 1000 }]
/** Beyond 3 the size falls by 4 %, beyond 9 only the time grows. */
const level = 9
/** Large enough to compress, small enough that reading one series skips most of a large file. */
const groupRows = 65_536
const sampleRows = groupRows

/** The encoding that a file says it was measured to be best in; undefined where nobody measured. */
export function measuredEncoding(file: Pick<FileEntry, 'meta'>): Encoding | undefined {
  const { encoding } = file.meta
  const match = typeof encoding === 'string' ? /^(v[12])\/(\d+)$/.exec(encoding) : null
  return match ? { version: match[1] as 'v1' | 'v2', dictionary: Number(match[2]) } : undefined
}

/** The encoding as a file's meta keeps it. */
export function encodingText(encoding: Encoding): string {
  return `${encoding.version}/${encoding.dictionary}`
}

/** Writes one file; a -0.0 anywhere forbids dictionaries. */
export async function writeParquet(
  session: Engine,
  rows: Rows,
  out: string,
  encoding: Encoding,
  metadata: Readonly<Record<string, string>>,
): Promise<number> {
  const pairs = Object.entries(metadata).map(([key, value]) => `${quote(key)}: ${quote(value)}`)
  await session.run(
    mergeSql('write', {
      ...rows,
      ...encoding,
      out: quote(out),
      level,
      group: groupRows,
      metadata: `{${pairs.join(', ')}}`,
    }),
  )
  return (await stat(out)).size
}

/** What measuring needs to know of the rows. */
export interface Measuring {
  readonly rows: Rows
  readonly count: number
  readonly minusZero: boolean
  /** A relation of contiguous rows that stands for the whole where the whole is too large to be written often. */
  readonly sample: string
  readonly out: string
  readonly metadata: Readonly<Record<string, string>>
}

/** Writes the rows in the smallest of the tried encodings, measured on all of them or on a long contiguous piece. */
export async function writeSmallest(session: Engine, what: Measuring): Promise<Encoding> {
  const { rows, count, minusZero, sample, out, metadata } = what
  const whole = count <= sampleRows
  const source = whole
    ? `(SELECT * FROM ${rows.source} ${rows.order})`
    : `(SELECT * FROM ${sample} LIMIT ${sampleRows})`
  await session.run(`CREATE OR REPLACE TEMP TABLE trial AS FROM ${source}`)
  const trials: { encoding: Encoding; path: string; bytes: number }[] = []
  for (const one of tried) {
    const encoding = minusZero ? { ...one, dictionary: 0 } : one
    if (trials.some((trial) => encodingText(trial.encoding) === encodingText(encoding))) continue
    const path = `${out}.${trials.length}`
    const bytes = await writeParquet(session, { source: 'trial', order: '' }, path, encoding, metadata)
    trials.push({ encoding, path, bytes })
  }
  await session.run('DROP TABLE trial')
  const best = trials.toSorted((a, b) => a.bytes - b.bytes)[0]
  if (!best) throw new RangeError('no encoding was tried')
  if (whole) await rename(best.path, out)
  for (const { path } of trials) await rm(path, { force: true })
  if (!whole) await writeParquet(session, rows, out, best.encoding, metadata)
  return best.encoding
}

/** The encoding that wins most, for merges too small to be measured. */
export function usualEncoding(minusZero: boolean): Encoding {
  return minusZero ? { ...usual, dictionary: 0 } : usual
}
