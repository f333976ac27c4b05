import { posix } from 'node:path'
import { listedAs, type StagedFile, type Ticket } from '../../lake/ledger/draft.ts'
import { formatDate, type Micros } from '../../base/time.ts'
import {
  archivedState,
  type StoredFile,
  storedPassing,
  type StoredVersion,
  liveFiles,
} from '../../lake/ledger/index-queries.ts'
import { parseRegistryFile, places, registryFile } from '../../lake/store/layout.ts'
import type { Json } from '../../lake/ledger/entry.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import {
  passingDraft,
  passingFacts,
  registryState,
  stateDraft,
  type RegistryState,
} from '../../sources/registry/staging.ts'
import { recordRows, type Rewriting, usualEncoding, writeEncoded } from './rewrite.ts'
import { type Engine, quote, quoteList, quoteName } from '../../lake/store/engine.ts'
import { type Columns, parquet } from '../../lake/store/parquet.ts'
import { archived, type Archived, isKept, toState } from '../../lake/ledger/archived-rows.ts'
import {
  holdsPoints,
  isHistory,
  orderOf,
  prove,
  rewriteFiles,
  supersededColumn,
  countUnproved,
  writeChanged,
} from './merge-files.ts'

/** The versions that a clock far ahead has dated, and their correction. */
export interface Mending {
  /** The versions that it dated, the first one first. */
  readonly wrong: readonly Pick<StoredVersion, 'version' | 'committed_at'>[]
  /** Commit time of the version before them; undefined if there was none. */
  readonly before: Micros | undefined
  /** Present time: later instants are false. */
  readonly now: Micros
  /** The version that mends. */
  readonly ticket: Ticket
  /** A number that no other file of this mending has. */
  readonly nextFile: () => number
}

/** True instants for the false ones of a repair. */
interface TrueInstants {
  /** Present time: later instants are false. */
  readonly now: Micros
  /** The wrong instants in their order; the true ones are in the same order, so that steps stay one after the other. */
  readonly known: ReadonlyMap<Micros, Micros>
  /** Instant that replaces any other false one. */
  readonly otherwise: Micros
}

/** Builds the SQL of the true instants of a column. */
export function trueInstantSql(name: string, { now, known, otherwise }: TrueInstants): string {
  const column = quoteName(name)
  const list = (values: Iterable<Micros>): string => `CAST([${[...values].join(', ')}] AS BIGINT[])`
  const found = `list_extract(${list(known.values())}, list_position(${list(known.keys())}, epoch_us(${column})))`
  return (
    `CASE WHEN epoch_us(${column}) > ${now} THEN make_timestamptz(coalesce(${found}, ${otherwise}::BIGINT)) ELSE ` +
    `${column} END`
  )
}

/** The columns that say when something was seen; no other instant of a file can be that of a wrong clock by itself. */
const seenColumns: ReadonlySet<string> = new Set(['at', 'observed_at', supersededColumn])

/**
 * Writes a file as the nth of the spool with true instants, `mended` by column; null if none of them lies in the
 * future. Nothing but these columns may change.
 */
export async function mendInstants(
  rewriting: Rewriting,
  n: number,
  file: StoredFile,
  { now, mended }: { readonly now: Micros; readonly mended: ReadonlyMap<string, string> },
): Promise<StagedFile | null> {
  return await rewriteFiles(rewriting, n, [file], async ({ session, source, columns, out, metadata }) => {
    if ((await aheadIn(session, source, columns, now)) === 0) return null
    const select = columns.map(({ name }) => `${mended.get(name) ?? quoteName(name)} AS ${quoteName(name)}`)
    const merged = isHistory(file.table) && columns.some(({ name }) => name === supersededColumn)
    const order = orderOf(merged || !isHistory(file.table) ? file.table : '', columns)
    const group = holdsPoints(file.table) ? {} : { group: recordRows }
    const rows = { source: `(SELECT ${select.join(', ')} FROM ${source})`, order, ...group }
    const changing = new Set(mended.keys())
    const written = await writeChanged(session, { files: [file], source, columns, rows, changing, out, metadata })
    const hidden = merged ? await countUnproved(session, parquet([out])) : 0
    if (hidden > 0 || (await aheadIn(session, parquet([out]), columns, now)) > 0)
      throw new Error(`mending ${file.path} would change more than instants`)
    return written
  })
}

/** Counts the rows of a relation with an instant of the future. */
async function aheadIn(session: Engine, source: string, columns: Columns, now: Micros): Promise<number> {
  const late = columns
    .filter(({ name }) => seenColumns.has(name))
    .map(({ name }) => `coalesce(epoch_us(${quoteName(name)}) > ${now}, false)`)
  const [row] = await session.rows(`SELECT count(*) AS n FROM ${source} WHERE ${late.join(' OR ') || 'false'}`)
  return Number(row?.['n'])
}

/** The part of a commit that mends the archived rows of the ledger. */
export interface MendedArchive {
  /** Files with true instants. */
  readonly add: StagedFile[]
  /** Paths of the files that they replace. */
  readonly remove: string[]
  /** State of the archive; empty if nothing changes. */
  readonly state: { readonly [key: string]: Json }
}

/**
 * Corrects rows of the ledger in files of the lake that a clock far ahead dated. Rows that are still in the index leave
 * the files, and the mark of archived rows goes back to before the wrong clock: else nothing before its instant would
 * ever be reported again.
 */
export async function mendArchive(rewriting: Rewriting, mending: Mending): Promise<MendedArchive> {
  const { ledger } = rewriting
  const archivedNow = archivedState(ledger)
  if (archivedNow.before <= mending.ticket.committed_at) return { add: [], remove: [], state: {} }
  const add: StagedFile[] = []
  const remove: string[] = []
  for (const table of archived)
    for (const file of liveFiles(ledger, { table })) {
      if (file.added_version < (mending.wrong[0]?.version ?? Infinity)) continue
      const mended = await mendArchived(rewriting, mending, table, file)
      remove.push(file.path)
      if (mended !== null) add.push(mended)
    }
  return { add, remove, state: toState({ ...archivedNow, before: (mending.before ?? 0) + 1 }) }
}

/** Windows and days whose dates do not come from this machine's clock. */
const foreign: ReadonlySet<string> = new Set(['since', 'until', 'provider_date'])

/** Rewrites a file without the rows that are still in the index and with true instants; null if no row is left. */
async function mendArchived(rewriting: Rewriting, mending: Mending, table: Archived, file: StoredFile) {
  const { version, committed_at: now } = mending.ticket
  // An instant of a wrong version is that version's mended one; any other of the future is that of the mending.
  const mendedTimes = new Map(mending.wrong.map((mended) => [mended.committed_at, now - (version - mended.version)]))
  const bound = (at: number | null): number | null => at && Math.min(at, Math.floor(now / 1_000_000))
  const range = { min_t: bound(file.min_t), max_t: bound(file.max_t) }
  const staged = await rewriteFiles(rewriting, mending.nextFile(), [file], async (old) => {
    const { session, source, columns, out, metadata } = old
    const mended = columns
      .filter(({ name, type }) => type === 'TIMESTAMP WITH TIME ZONE' && !foreign.has(name))
      .map(({ name }) => `${trueInstantSql(name, { now, known: mendedTimes, otherwise: now })} AS "${name}"`)
    const rest = `(SELECT * REPLACE (${mended.join(', ')}) FROM ${source} WHERE ${staysSql(rewriting, mending, table)})`
    await writeEncoded(session, { source: rest, order: '' }, out, usualEncoding(false, file.rows), metadata)
    const { rows, digest } = await prove(session, parquet([out]), columns, table)
    if (!isKept(table) && rows !== file.rows) throw new RangeError(`${file.rows} rows of ${file.path} became ${rows}`)
    return rows === 0 ? null : { rows, digest, ...range, meta: file.meta }
  })
  const month = new Date(now / 1000).toISOString().slice(0, 7)
  return staged && { ...staged, label: file.label > month ? month : file.label }
}

/**
 * Builds the condition for rows to stay: those with a row in the index only if they were in files before the wrong
 * clock.
 */
function staysSql({ ledger }: Rewriting, { before = 0 }: Mending, table: Archived): string {
  if (!isKept(table)) return 'true'
  const [key, instant] = table === 'versions' ? ['version', 'committed_at'] : ['id', 'started_at']
  const listedRow = ledger.statement(`SELECT ${key} AS key FROM ${table}`).all()
  const keys = quoteList(listedRow.map((row) => String(row['key'])))
  return `epoch_us(${instant}) <= ${before} OR CAST(${key} AS VARCHAR) NOT IN (SELECT unnest(${keys}))`
}

/** The true instants of polls, the day of the mending, and what layers of dated tables are called from now on. */
interface Polls extends TrueInstants {
  /** `YYYY-MM-DD`. */
  readonly date: string
  readonly layers: Map<string, string>
}

/** Lists the instants of the versions from `first` on that added files of the registry or of the listing of assets. */
export function pollInstants(ledger: Ledger, first: number): Micros[] {
  return ledger
    .statement(
      `SELECT committed_at FROM versions WHERE version >= ? AND version IN
       (SELECT added_version FROM files WHERE (path GLOB ? AND tbl <> 'raw') OR path GLOB ?) ORDER BY version`,
    )
    .all(first, `${places.registry}/*`, `${places.assets}/*`)
    .map((row) => Number(row['committed_at']))
}

/**
 * Redates what polls of a wrong clock added to the instant of the repair: files are rewritten, dates and layers are
 * named after the true day, the state follows. Several polls stay one after the other, the last one at the commit.
 */
export async function mendRegistry(rewriting: Rewriting, mending: Mending, instants: readonly Micros[]) {
  const { ledger } = rewriting
  const { now, wrong, ticket } = mending
  const first = wrong[0]?.version ?? Infinity
  const last = ticket.committed_at
  const mendedTimes = new Map(instants.map((at, i) => [at, last - (instants.length - 1 - i)]))
  const polls: Polls = { now, known: mendedTimes, otherwise: last, date: formatDate(last / 1e6), layers: new Map() }
  const paths = new Map<string, string>()
  const add: StagedFile[] = []
  let rows = 0
  const polled = liveFiles(ledger).filter(
    ({ path }) => parseRegistryFile(path) !== undefined || path.startsWith(`${places.assets}/`),
  )
  // Dated tables come first: their new names are in `snapshots`.
  const sorted = [...polled.filter(({ label }) => label !== ''), ...polled.filter(({ label }) => label === '')]
  for (const [path, listed] of Map.groupBy(sorted, (file) => file.path)) {
    const staged = await mendFile(rewriting, mending, polls, listed)
    if (staged === null) {
      add.push(...listedToday(listed, first, polls.date))
      continue
    }
    add.push(staged)
    paths.set(path, staged.path)
    rows += staged.rows
  }
  const raw = relabelled(ledger, first, polls.date)
  return {
    add: [...add, ...raw],
    remove: [...paths.keys(), ...raw.map(({ path }) => path)],
    state: stateOf(ledger, polls, paths),
    passing: passingOf(ledger, mending),
    rows,
  }
}

/** Rewrites a file; null if the wrong clock did not make it. */
async function mendFile(
  rewriting: Rewriting,
  { wrong, ticket, nextFile }: Mending,
  polls: Polls,
  listed: readonly StoredFile[],
): Promise<StagedFile | null> {
  const [file] = listed
  if (!file || listed.some(({ added_version }) => added_version < (wrong[0]?.version ?? Infinity))) return null
  const layer = `${layerOf(file.path)}-v${ticket.version}`
  // The rows of a dated file name it, and so does its snapshot; those of one poll have one name in all tables.
  if (file.label !== '') polls.layers.set(layerOf(file.path), layer)
  const staged = await mendInstants(rewriting, nextFile(), file, { now: polls.now, mended: mendedSql(polls) })
  if (file.label === '') return staged
  if (staged === null) throw new RangeError(`${file.path} has another instant than its version`)
  return { ...staged, path: registryFile(file.table, layer, polls.date), label: polls.date }
}

/** Builds the SQL by column of what a wrong poll has dated or named. */
function mendedSql(polls: Polls): ReadonlyMap<string, string> {
  const { now, date, layers } = polls
  const mended = new Map([...seenColumns].map((name) => [name, trueInstantSql(name, polls)]))
  mended.set(
    'snapshot_date',
    `CASE WHEN epoch_us(observed_at) > ${now} THEN CAST(${quote(date)} AS DATE) ELSE snapshot_date END`,
  )
  const cases = [...layers].map(([from, to]) => `WHEN ${quote(from)} THEN ${quote(to)}`).join(' ')
  for (const name of layers.size === 0 ? [] : ['layer', 'base', 'delta'])
    mended.set(name, `CASE ${quoteName(name)} ${cases} ELSE ${quoteName(name)} END`)
  return mended
}

/** Lists a layer that a wrong date refers to under the true date. */
function listedToday(listed: readonly StoredFile[], first: number, date: string): StagedFile[] {
  const [file] = listed
  const wrong = listed.some(({ label, added_version }) => added_version >= first && label !== '')
  if (!file || !wrong || listed.some(({ label }) => label === date)) return []
  return [listedAs(file, { label: date })]
}

/** Corrects the date of bodies that only the wrong clock has listed: they would be kept until its day comes. */
function relabelled(ledger: Ledger, first: number, date: string): StagedFile[] {
  const listed = Map.groupBy(liveFiles(ledger, { table: 'raw' }), (file) => file.path)
  return [...listed.values()].flatMap((files) => {
    const [file] = files
    const wrong = files.every(({ label, added_version }) => added_version >= first && label > date)
    return file && wrong ? [listedAs(file, { label: date })] : []
  })
}

const layerOf = (path: string): string => posix.basename(path, '.parquet')

function stateOf(ledger: Ledger, polls: Polls, paths: ReadonlyMap<string, string>) {
  const { first, last, layers } = registryState(ledger)
  const instant = (at: Micros): Micros => (at > polls.now ? (polls.known.get(at) ?? polls.otherwise) : at)
  const snapshot = (shown: RegistryState['last']): RegistryState['last'] =>
    shown === null || shown.observed_at <= polls.now
      ? shown
      : { ...shown, date: polls.date, observed_at: instant(shown.observed_at) }
  const mended = Object.entries(layers).map(([table, layer]) => {
    const delta = layer.delta === null ? null : (paths.get(layer.delta) ?? layer.delta)
    return [table, { ...layer, base: paths.get(layer.base) ?? layer.base, base_at: instant(layer.base_at), delta }]
  })
  if (first === null && last === null) return {}
  return stateDraft({
    first: snapshot(first),
    last: snapshot(last),
    layers: Object.fromEntries(mended) as RegistryState['layers'],
  })
}

/** Computes when the feed was last read: too early rather than too late, after the previous commit. */
function passingOf(ledger: Ledger, { now, before }: Mending) {
  const { polled } = passingFacts(ledger)
  const limit = storedPassing(ledger, 'registry.snapshot_limit')
  return passingDraft({
    ...(polled !== null && polled * 1000 > now && { polled: before === undefined ? null : Math.floor(before / 1000) }),
    ...(limit !== undefined && limit.at > now && { snapshotLimit: null }),
  })
}
