import {
  appendPrivate,
  copy,
  isThere,
  readBytes,
  readInto,
  readStream,
  sizeNow,
  textOf,
  writePrivate,
  writeStream,
} from '../store/files.ts'
import { codeOf, type Disk, namesIn, realDisk, statOf } from '../store/disk.ts'
import { isObject, jsonOf } from '../../base/json.ts'
import type { ColumnChecks, runColumns } from './columns.ts'
import type { CoverageRow, Json, RequestRow, Verified } from './entry.ts'
import { type Micros, parseMicros } from '../../base/time.ts'
import { inLake, places, runFile, runLog } from '../store/layout.ts'
import { makeLakeFolder } from '../store/private-folders.ts'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip, gunzipSync, gzipSync } from 'node:zlib'
import { redact } from '../../base/secrets.ts'
import type { Shaped } from '../../base/value-checks.ts'

// `runs/<run>.jsonl`: part of the lake, forced to the disk and read into the index. The log next to it is for people
// only.

/** A run from its beginning to its end: its columns in `columns.ts`. */
export type RunFacts = Shaped<ColumnChecks<typeof runColumns>>

/** One line of a run's file: facts that the run learned without making a version. */
export interface FactLine {
  /** The newest version when the line was written: on rebuilding it is applied right after that one. */
  readonly after: number
  readonly run?: RunFacts
  readonly requests?: readonly RequestRow[]
  /** Windows that were requested again and returned the answer already known. */
  readonly asked_again?: readonly CoverageRow[]
  readonly verified?: readonly Verified[]
  /** Facts noted in passing, by their names in the journal (`Draft.passing`); the latest `at` counts. */
  readonly soft?: { readonly [key: string]: { readonly at: Micros; readonly value: Json } }
}

/** A line with its place: file name and the offset of the byte after it. */
export interface PlacedFacts {
  readonly name: string
  readonly end: number
  readonly line: FactLine
}

/** Adds lines to a run's file and forces them to the disk. */
export async function appendFacts(disk: Disk, root: string, run: string, lines: readonly FactLine[]): Promise<void> {
  if (lines.length === 0) return
  const folder = inLake(root, places.runs)
  await makeLakeFolder(disk, root, places.runs)
  const path = inLake(root, runFile(run))
  const fresh = (await statOf(path)) === undefined
  await disk.append(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  if (fresh) await disk.syncFolder(folder)
}

/**
 * Reads the lines after the given offsets, of all runs or of the named files only, in the order of the versions that
 * they follow. A last line without its end is still being written, or was cut by a crash, and does not count.
 */
export async function readFacts(
  root: string,
  offsetOf: (name: string) => number,
  only?: readonly string[],
): Promise<PlacedFacts[]> {
  const placed: PlacedFacts[] = []
  for (const name of only ?? (await namesIn(inLake(root, places.runs)))) {
    if (!name.endsWith('.jsonl')) continue
    const path = inLake(root, `${places.runs}/${name}`)
    const from = offsetOf(name)
    if (sizeNow(path) <= from) continue
    const bytes = await readBytes(path).catch((error: unknown) => {
      // A checkpoint was written meanwhile and contains its lines.
      if (codeOf(error) === 'ENOENT') return Buffer.alloc(0)
      throw error
    })
    placed.push(...linesOf(name, bytes.subarray(from), from))
  }
  return placed.toSorted((a, b) => a.line.after - b.line.after)
}

/**
 * Forces lines that were read to the disk, whichever process wrote them, so that nothing derived from them outlives
 * them.
 */
export async function forceFacts(disk: Disk, root: string, lines: readonly PlacedFacts[]): Promise<void> {
  const names = new Set(lines.map(({ name }) => name))
  for (const name of names) await disk.sync(inLake(root, `${places.runs}/${name}`))
  if (names.size > 0) await disk.syncFolder(inLake(root, places.runs))
}

function linesOf(name: string, bytes: Buffer, from: number): PlacedFacts[] {
  const lines: PlacedFacts[] = []
  let start = 0
  for (let stop = bytes.indexOf(0x0a); stop >= 0; stop = bytes.indexOf(0x0a, start)) {
    const line = parseLine(bytes.toString('utf8', start, stop))
    start = stop + 1
    if (line) lines.push({ name, end: from + start, line })
  }
  return lines
}

/** Parses a line; undefined if a crash cut it in half and a later line completed it, so that it is not JSON. */
function parseLine(text: string): FactLine | undefined {
  const line = jsonOf(text)
  return isObject(line) && typeof line['after'] === 'number' ? { ...line, after: line['after'] } : undefined
}

/** The dependencies of a run's log. */
interface Logging {
  /** Returns the current time in milliseconds since 1970. */
  readonly now: () => number
  /** Texts that must not reach the log. */
  readonly secrets: readonly string[]
}

/**
 * The log of one run, `runs/<run>.log`, for people. Disposing of it waits until all lines are written; a long one is
 * compressed.
 */
export interface RunLog extends AsyncDisposable {
  /** Adds a line: the event and its facts, as one JSON object. */
  readonly note: (event: string, facts: object) => void
}

/**
 * Opens `runs/<run>.log`: one JSON object per line, `at` and `event` first. The log is for people: lines that cannot be
 * written are dropped, because the commit on the same disk reports the error. No secret reaches it.
 */
export function openRunLog(root: string, run: string, { now, secrets }: Logging): RunLog {
  const path = inLake(root, runLog(run))
  let pending = ''
  let writing: Promise<void> | null = null
  const drain = async (): Promise<void> => {
    while (pending !== '') {
      const text = pending
      pending = ''
      await makeLakeFolder(realDisk, root, places.runs)
        .then(async () => await appendPrivate(path, text))
        .catch(() => undefined)
    }
    writing = null
  }
  return {
    note: (event: string, facts: object): void => {
      const line = JSON.stringify({ at: new Date(now()).toISOString(), event, ...facts })
      pending += `${redact(line, secrets, 'data')}\n`
      writing ??= Promise.resolve().then(drain)
    },
    [Symbol.asyncDispose]: async () => {
      while (writing !== null) await writing
      await compressLog(root, run).catch(() => undefined)
    },
  }
}

/** Maximum bytes of a log that stays uncompressed; a larger one is compressed at the end of the run. */
const plainLog = 65_536

/** Appends the log of an ended run to `runs/<run>.log.gz`, which may contain an earlier part of the run. */
async function compressLog(root: string, run: string): Promise<void> {
  const path = inLake(root, runLog(run))
  if (sizeNow(path) < plainLog) return
  const temporary = inLake(root, `${places.runs}/.tmp-${basename(path)}.gz`)
  await realDisk.remove(temporary)
  if (isThere(`${path}.gz`)) await copy(`${path}.gz`, temporary)
  await pipeline(readStream(path), createGzip(), writeStream(temporary, 'a'))
  await realDisk.sync(temporary)
  await realDisk.move(temporary, `${path}.gz`)
  await realDisk.remove(path)
}

/** Lists the logs in the folder of runs, relative to the lake, with the time at which each begins, oldest first. */
export async function readLogs(root: string): Promise<{ readonly path: string; readonly began: Micros }[]> {
  const logs: { path: string; began: Micros }[] = []
  for (const name of await namesIn(inLake(root, places.runs))) {
    const path = `${places.runs}/${name}`
    const [, day] = ofDay.exec(name) ?? []
    if (day !== undefined) logs.push({ path, began: parseMicros(`${day}T00:00:00Z`) ?? 0 })
    else if (/^[^.].*\.log(?:\.gz)?$/.test(name)) {
      const [, text] = /^\{"at":"([^"]+)"/.exec(await beginningOf(inLake(root, path))) ?? []
      const began = text === undefined ? undefined : parseMicros(text)
      if (began !== undefined) logs.push({ path, began })
    }
  }
  return logs.toSorted((a, b) => a.began - b.began || (a.path < b.path ? -1 : 1))
}

/** Reads the first characters of a log, compressed or not; '' if it cannot be read. */
async function beginningOf(path: string): Promise<string> {
  const bytes = await readInto(path, Buffer.alloc(4096))
  if (!path.endsWith('.gz')) return bytes.toString()
  try {
    return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
  } catch {
    return ''
  }
}

const ofDay = /^(\d{4}-\d\d-\d\d)\.log\.gz$/

/** Reads the text of a compressed log; undefined if there is none or if it cannot be read. */
export async function gatheredLog(path: string): Promise<string | undefined> {
  const bytes = await readBytes(path).catch(() => undefined)
  try {
    return bytes && gunzipSync(bytes).toString()
  } catch {
    return undefined
  }
}

/**
 * Joins the logs that began before a certain time into one compressed file per day: a folder with many names takes long
 * to search, and lines of requests are very similar.
 */
export async function gatherLogs(root: string, disk: Disk, before: Micros): Promise<void> {
  const old = (await readLogs(root)).filter(({ path, began }) => began < before && !ofDay.test(basename(path)))
  for (const [day, logs] of Map.groupBy(old, ({ began }) => new Date(began / 1000).toISOString().slice(0, 10))) {
    const path = inLake(root, `${places.runs}/${day}.log.gz`)
    // A run that was killed at this point has gathered some of them.
    const logText = (await gatheredLog(path)) ?? ''
    let gatheredText = logText
    const gathered: string[] = []
    for (const log of logs) {
      const logFile = inLake(root, log.path)
      const text = log.path.endsWith('.gz') ? await gatheredLog(logFile) : await textOf(logFile)
      if (text === undefined) continue
      if (!gatheredText.includes(text)) gatheredText += text
      gathered.push(logFile)
    }
    if (gatheredText !== logText) {
      const temporary = inLake(root, `${places.runs}/.tmp-${day}.log.gz`)
      await writePrivate(temporary, gzipSync(gatheredText))
      await disk.sync(temporary)
      await disk.move(temporary, path)
    }
    for (const logFile of gathered) await disk.remove(logFile)
  }
}
