import { join, posix } from 'node:path'
import { usage } from '../../base/errors.ts'
import { type Interval, isInterval, type Micros } from '../../base/time.ts'

/** The longest name of a file or folder that common file systems take, in bytes. */
const longestName = 255
const encoder = new TextEncoder()
const readable = /[a-z0-9_\-.]/
const hiveNulls = new Set(['null', '__hive_default_partition__'])

/**
 * Encodes a text as one part of a path: percent-encoded UTF-8, which DuckDB's hive partitions decode. Capitals are
 * encoded, too, so that names differ on file systems that ignore case.
 */
export function encodeSegment(text: string): string {
  if (text === '' || !text.isWellFormed())
    throw usage('name', { expected: 'a text of valid unicode', got: JSON.stringify(text) })
  const isReserved = hiveNulls.has(text)
  let out = ''
  let at = 0
  for (const char of text) {
    const edge = char === '.' && (at === 0 || at === text.length - 1)
    const plain = readable.test(char) && !edge && !(isReserved && at === 0)
    out += plain ? char : percent(char)
    at += char.length
  }
  if (out.length > longestName - 'metric='.length)
    throw usage(`name ${text.slice(0, 60)}…`, { expected: 'at most 248 bytes when encoded', got: `${out.length}` })
  return out
}

/** Decodes the text that was given to `encodeSegment`. */
export function decodeSegment(segment: string): string {
  return decodeURIComponent(segment)
}

function percent(char: string): string {
  return [...encoder.encode(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}

/** Joins the lake's folder and a path inside it, which always uses forward slashes. */
export function inLake(root: string, path: string): string {
  const clean = posix.normalize(path)
  if (clean.startsWith('../') || clean === '..' || posix.isAbsolute(clean) || clean.includes('\\'))
    throw usage(`path ${path}`, { expected: 'a path inside the lake' })
  return join(root, ...clean.split('/'))
}

/** The folders and single files of a lake, relative to it. */
export const places = {
  journal: 'journal',
  aside: 'journal/aside',
  marker: 'lake.json',
  ledger: 'ledger.sqlite',
  points: 'points',
  assets: 'assets',
  archive: 'archive',
  registry: 'registry',
  raw: 'registry/raw',
  quarantine: 'quarantine',
  swept: 'swept',
  spool: 'spool',
  runs: 'runs',
  stamps: 'stamps',
  heads: 'heads',
  exports: 'exports',
  locks: 'locks',
  database: 'lake.duckdb',
  script: 'lake.sql',
  manifest: 'lake.manifest.json',
  alarms: 'alarms.json',
  pages: 'pages.json',
  arrivals: 'arrivals.json',
} as const

/** The folders at the top of a lake. */
export const ownFolders: readonly string[] = Object.values(places).filter((place) => !/[./]/.test(place))

/** Path of an entry: `journal/0000000012.json.gz`. */
export function entryFile(version: number): string {
  return `${places.journal}/${pad(version)}.json.gz`
}

/** Path of a checkpoint with everything up to and including a version: `journal/0000000012.checkpoint.jsonl`. */
export function checkpointFile(version: number): string {
  return `${places.journal}/${pad(version)}.checkpoint.jsonl`
}

/**
 * Path of an entry that could not be applied, with the digest that its successor names:
 * `journal/aside/0000000012-<sha256>.json.gz`.
 */
export function asideFile(version: number, digest: string): string {
  return `${places.aside}/${versionedName(version, digest)}.json.gz`
}

/** First part of the names of all data files: `0000000012-<name>`. */
export function versionedName(version: number, name: string): string {
  return `${pad(version)}-${name}`
}

function pad(version: number): string {
  return String(version).padStart(10, '0')
}

/** Parses a name in the journal's folder; undefined for temporary and foreign files. */
export function parseJournalName(name: string): { kind: 'entry' | 'checkpoint'; version: number } | undefined {
  const match = /^(\d{10,15})(?:(\.checkpoint)\.jsonl|\.json\.gz)$/.exec(name)
  return match ? { kind: match[2] ? 'checkpoint' : 'entry', version: Number(match[1]) } : undefined
}

/** Path of a points file: `points/metric=<encoded>/interval=24h/<id>.parquet`. */
export function pointsFile(metric: string, interval: Interval, id: string): string {
  return `${places.points}/metric=${encodeSegment(metric)}/interval=${interval}/${encodeSegment(id)}.parquet`
}

/** Path of points that a commit added in small portions, of all metrics together: `points/recent/<id>.parquet`. */
export function recentFile(id: string): string {
  return `${places.points}/recent/${encodeSegment(id)}.parquet`
}

/** Parses a path that `pointsFile` built; undefined for any other. */
export function parsePointsFile(path: string): { metric: string; interval: Interval; id: string } | undefined {
  const match = /^points\/metric=([^/]+)\/interval=([^/]+)\/([^/]+)\.parquet$/.exec(path)
  const [, metric, interval, id] = match ?? []
  if (metric === undefined || interval === undefined || id === undefined || !isInterval(interval)) return undefined
  return { metric: decodeSegment(metric), interval, id: decodeSegment(id) }
}

/** Path of rows of the metrics API's listing of assets: `assets/<id>.parquet`. */
export function assetsFile(id: string): string {
  return `${places.assets}/${encodeSegment(id)}.parquet`
}

/** Path of rows that the ledger no longer contains: `archive/<table>/<id>.parquet`. */
export function archiveFile(table: string, id: string): string {
  return `${places.archive}/${encodeSegment(table)}/${encodeSegment(id)}.parquet`
}

/**
 * Path of a registry file: `registry/<table>/<id>.parquet`, with `snapshot_date=YYYY-MM-DD/` before the id if a date is
 * given.
 */
export function registryFile(table: string, id: string, date: string | null): string {
  const folder = date === null ? '' : `snapshot_date=${encodeSegment(date)}/`
  return `${places.registry}/${encodeSegment(table)}/${folder}${encodeSegment(id)}.parquet`
}

/** Parses a path that `registryFile` built; undefined for any other. */
export function parseRegistryFile(path: string): { table: string; id: string; date: string | null } | undefined {
  const match = /^registry\/([^/]+)\/(?:snapshot_date=([^/]+)\/)?([^/]+)\.parquet$/.exec(path)
  const [, table, date, id] = match ?? []
  if (table === undefined || id === undefined || path.startsWith(`${places.raw}/`)) return undefined
  return { table: decodeSegment(table), id: decodeSegment(id), date: date === undefined ? null : decodeSegment(date) }
}

/** Path of a body as received: `registry/raw/<kind>/<id><extension>`. */
export function rawFile(kind: string, id: string, extension: string): string {
  return `${places.raw}/${encodeSegment(kind)}/${encodeSegment(id)}${extension}`
}

/** Path of a body that could not be decoded, or of the request that returned it: `quarantine/<id><extension>`. */
export function quarantineFile(id: string, extension: string): string {
  return `${places.quarantine}/${encodeSegment(id)}${extension}`
}

/**
 * Returns the version at the beginning of a data file's name; undefined for a path that no writer of this program
 * builds. No other file below the data folders ever counts as pitlake's.
 */
export function dataVersion(path: string): number | undefined {
  const place =
    /^(?:points\/(?:recent|metric=[^/]+\/interval=[^/]+)|assets|archive\/[^/]+|registry\/raw\/[^/]+|registry\/[^/]+(?:\/snapshot_date=[^/]+)?)\//
  const rest = path.replace(place, '')
  const match = /^(\d{10,15})-[a-z0-9_%.A-F-]+\.(?:parquet|json(?:\.zst|\.gz)?|bin(?:\.zst)?)$/.exec(rest)
  return rest === path || !match ? undefined : Number(match[1])
}

/** Path of the signed head of a log with `size` entries: `heads/0000000012.txt`. */
export function headFile(size: number): string {
  return `${places.heads}/${pad(size)}.txt`
}

/** Formats a timestamp as a part of a name: `20240301t000000000z`. */
export function instantName(at: Micros): string {
  return new Date(at / 1000).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()
}

/** Whether a name begins like those of this program's runs: with a timestamp and a process, or a stamp. */
export function isRunName(name: string): boolean {
  return /^(?:\d{8}t\d{9}z-\d+|stamp-[a-z0-9]+-\d+)/.test(name)
}

/** Path of the folder of everything that a run has not yet committed: `spool/<run>`. */
export function spoolFolder(run: string): string {
  return `${places.spool}/${encodeSegment(run)}`
}

/**
 * Path of the requests, repeated windows and summaries of one run, a part of the lake's records: `runs/<run>.jsonl`.
 */
export function runFile(run: string): string {
  return `${places.runs}/${encodeSegment(run)}.jsonl`
}

/** Returns the run to which a file of this name belongs. */
export function runOf(name: string): string {
  return decodeSegment(name.slice(0, -'.jsonl'.length))
}

/** Path of the log of a run for people, one JSON object per line: `runs/<run>.log`. */
export function runLog(run: string): string {
  return `${places.runs}/${encodeSegment(run)}.log`
}

/** Path of a file that the operating system locks, and that only the lock may open: `locks/<name>.lock`. */
export function lockFile(name: string): string {
  return `${places.locks}/${encodeSegment(name)}.lock`
}

/** Path of the description of the process that has the lock, for people: `locks/<name>.json`. */
export function holderFile(name: string): string {
  return `${places.locks}/${encodeSegment(name)}.json`
}
