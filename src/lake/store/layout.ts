import { join, posix } from 'node:path'
import { usage } from '../../base/errors.ts'
import { type Interval, isInterval, type Micros } from '../../base/time.ts'

/** The longest name of a file or folder that common file systems take, in bytes. */
const longestName = 255
const encoder = new TextEncoder()
const readable = /[a-z0-9_\-.]/
const hiveNulls = new Set(['null', '__hive_default_partition__'])

/**
 * The text as one part of a path: percent-encoded UTF-8, decoded again by DuckDB's hive partitions.
 * Capitals are encoded too, so that names stay apart on file systems that ignore case.
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

/** The text that `encodeSegment` was given. */
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

/** `journal/0000000012.json.gz`. */
export function entryFile(version: number): string {
  return `${places.journal}/${pad(version)}.json.gz`
}

/** `journal/0000000012.checkpoint.jsonl`: everything up to and including that version. */
export function checkpointFile(version: number): string {
  return `${places.journal}/${pad(version)}.checkpoint.jsonl`
}

/**
 * `journal/aside/0000000012-<sha256>.json.gz`: an entry that could not be applied, and the digest that its successor
 * names.
 */
export function asideFile(version: number, digest: string): string {
  return `${places.aside}/${versionedName(version, digest)}.json.gz`
}

/** `0000000012-<name>`: how the names of all data files begin. */
export function versionedName(version: number, name: string): string {
  return `${pad(version)}-${name}`
}

function pad(version: number): string {
  return String(version).padStart(10, '0')
}

/** What a name in the journal's folder stands for; undefined for temporary and foreign files. */
export function parseJournalName(name: string): { kind: 'entry' | 'checkpoint'; version: number } | undefined {
  const match = /^(\d{10,15})(?:(\.checkpoint)\.jsonl|\.json\.gz)$/.exec(name)
  return match ? { kind: match[2] ? 'checkpoint' : 'entry', version: Number(match[1]) } : undefined
}

/** `points/metric=<encoded>/interval=24h/<id>.parquet`. */
export function pointsFile(metric: string, interval: Interval, id: string): string {
  return `${places.points}/metric=${encodeSegment(metric)}/interval=${interval}/${encodeSegment(id)}.parquet`
}

/** `points/recent/<id>.parquet`: what a commit brought in small portions, all metrics together. */
export function recentFile(id: string): string {
  return `${places.points}/recent/${encodeSegment(id)}.parquet`
}

/** The parts of a path that `pointsFile` made; undefined for any other. */
export function parsePointsFile(path: string): { metric: string; interval: Interval; id: string } | undefined {
  const match = /^points\/metric=([^/]+)\/interval=([^/]+)\/([^/]+)\.parquet$/.exec(path)
  const [, metric, interval, id] = match ?? []
  if (metric === undefined || interval === undefined || id === undefined || !isInterval(interval)) return undefined
  return { metric: decodeSegment(metric), interval, id: decodeSegment(id) }
}

/** `assets/<id>.parquet`: rows of the metrics API's listing of assets. */
export function assetsFile(id: string): string {
  return `${places.assets}/${encodeSegment(id)}.parquet`
}

/** `archive/<table>/<id>.parquet`: rows that the ledger no longer holds. */
export function archiveFile(table: string, id: string): string {
  return `${places.archive}/${encodeSegment(table)}/${encodeSegment(id)}.parquet`
}

/** `registry/<table>/<id>.parquet`, or in `snapshot_date=YYYY-MM-DD/` where a date is given. */
export function registryFile(table: string, id: string, date: string | null): string {
  const folder = date === null ? '' : `snapshot_date=${encodeSegment(date)}/`
  return `${places.registry}/${encodeSegment(table)}/${folder}${encodeSegment(id)}.parquet`
}

/** The parts of a path that `registryFile` made; undefined for any other. */
export function parseRegistryFile(path: string): { table: string; id: string; date: string | null } | undefined {
  const match = /^registry\/([^/]+)\/(?:snapshot_date=([^/]+)\/)?([^/]+)\.parquet$/.exec(path)
  const [, table, date, id] = match ?? []
  if (table === undefined || id === undefined || path.startsWith(`${places.raw}/`)) return undefined
  return { table: decodeSegment(table), id: decodeSegment(id), date: date === undefined ? null : decodeSegment(date) }
}

/** `registry/raw/<kind>/<id><extension>`: a body as received. */
export function rawFile(kind: string, id: string, extension: string): string {
  return `${places.raw}/${encodeSegment(kind)}/${encodeSegment(id)}${extension}`
}

/** `quarantine/<id><extension>`: a body that could not be decoded, or the request that brought it. */
export function quarantineFile(id: string, extension: string): string {
  return `${places.quarantine}/${encodeSegment(id)}${extension}`
}

/**
 * The version that the name of a data file begins with; undefined for a path that no writer of this program makes.
 * Nothing else below the data folders is ever taken for ours.
 */
export function dataVersion(path: string): number | undefined {
  const place =
    /^(?:points\/(?:recent|metric=[^/]+\/interval=[^/]+)|assets|archive\/[^/]+|registry\/raw\/[^/]+|registry\/[^/]+(?:\/snapshot_date=[^/]+)?)\//
  const rest = path.replace(place, '')
  const match = /^(\d{10,15})-[a-z0-9_%.A-F-]+\.(?:parquet|json(?:\.zst|\.gz)?|bin(?:\.zst)?)$/.exec(rest)
  return rest === path || !match ? undefined : Number(match[1])
}

/** `heads/0000000012.txt`: the signed head of a log of so many entries. */
export function headFile(size: number): string {
  return `${places.heads}/${pad(size)}.txt`
}

/** An instant as a part of a name: `20240301t000000000z`. */
export function instantName(at: Micros): string {
  return new Date(at / 1000).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()
}

/** Whether a name begins as the runs of this program do: an instant and a process, or a stamp. */
export function isRunName(name: string): boolean {
  return /^(?:\d{8}t\d{9}z-\d+|stamp-[a-z0-9]+-\d+)/.test(name)
}

/** `spool/<run>`: the folder of everything that a run has not yet committed. */
export function spoolFolder(run: string): string {
  return `${places.spool}/${encodeSegment(run)}`
}

/** `runs/<run>.jsonl`: requests, re-asked windows and summaries of one run; part of the lake's memory. */
export function runFile(run: string): string {
  return `${places.runs}/${encodeSegment(run)}.jsonl`
}

/** The run whose file bears this name. */
export function runOf(name: string): string {
  return decodeSegment(name.slice(0, -'.jsonl'.length))
}

/** `runs/<run>.log`: what a run told, for people; a JSON object a line. */
export function runLog(run: string): string {
  return `${places.runs}/${encodeSegment(run)}.log`
}

/** `locks/<name>.lock`: held by the operating system, never to be opened by anything but the lock. */
export function lockFile(name: string): string {
  return `${places.locks}/${encodeSegment(name)}.lock`
}

/** `locks/<name>.json`: who holds the lock, for people. */
export function holderFile(name: string): string {
  return `${places.locks}/${encodeSegment(name)}.json`
}
