import { posix } from 'node:path'
import { type Draft, type StagedFile, listedAs } from '../ledger/draft.ts'
import { formatDate, type Micros } from '../time.ts'
import { type HeldFile, heldPassing, liveFiles } from '../ledger/held.ts'
import { parseRegistryFile, places, registryFile } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import {
  type Mended,
  type Mending,
  mendInstants,
  seenColumns,
  type TrueInstants,
  trueInstantSql,
} from './clock-archive.ts'
import { registryState, type RegistryState, passingDraft, passingFacts, stateDraft } from '../registry/state.ts'
import { type Rewriting } from './rewrite.ts'
import { quoteName, quote } from '../store/engine.ts'

/** The mending of these tables as a part of a draft. */
interface MendedRegistry extends Mended, Required<Pick<Draft, 'state' | 'passing'>> {
  readonly rows: number
}

/** The true instants of polls, the day of the mending, and what layers of dated tables are called from now on. */
interface Polls extends TrueInstants {
  /** `YYYY-MM-DD`. */
  readonly date: string
  readonly layers: Map<string, string>
}

/** The instants of the versions from `first` on that brought files of the registry or of the listing of assets. */
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
 * Gives what polls of a wrong clock brought the instant of the mending: files are written anew, dates and layers are
 * named after the true day, the state follows. Several polls stay one after the other, the last one at the commit.
 */
export async function mendRegistry(
  rewriting: Rewriting,
  mending: Mending,
  instants: readonly Micros[],
): Promise<MendedRegistry> {
  const { ledger } = rewriting
  const { now, wrong, ticket } = mending
  const first = wrong[0]?.version ?? Infinity
  const last = ticket.committed_at
  const known = new Map(instants.map((at, i) => [at, last - (instants.length - 1 - i)]))
  const polls: Polls = { now, known, otherwise: last, date: formatDate(last / 1e6), layers: new Map() }
  const paths = new Map<string, string>()
  const add: StagedFile[] = []
  let rows = 0
  const polled = liveFiles(ledger).filter(
    ({ path }) => parseRegistryFile(path) !== undefined || path.startsWith(`${places.assets}/`),
  )
  // Dated tables come first: their new names stand in `snapshots`.
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

/** A file written anew; null where it was not made by the wrong clock. */
async function mendFile(
  rewriting: Rewriting,
  { wrong, ticket, nextFile }: Mending,
  polls: Polls,
  listed: readonly HeldFile[],
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

/** SQL by column of what a wrong poll has dated or named. */
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

/** A layer of before that a wrong date is made of is one of the true date. */
function listedToday(listed: readonly HeldFile[], first: number, date: string): StagedFile[] {
  const [file] = listed
  const wrong = listed.some(({ label, added_version }) => added_version >= first && label !== '')
  if (!file || !wrong || listed.some(({ label }) => label === date)) return []
  return [listedAs(file, { label: date })]
}

/** Bodies that only the wrong clock has listed: they would be kept until its day comes. */
function relabelled(ledger: Ledger, first: number, date: string): StagedFile[] {
  const listed = Map.groupBy(liveFiles(ledger, { table: 'raw' }), (file) => file.path)
  return [...listed.values()].flatMap((files) => {
    const [file] = files
    const wrong = files.every(({ label, added_version }) => added_version >= first && label > date)
    return file && wrong ? [listedAs(file, { label: date })] : []
  })
}

function layerOf(path: string): string {
  return posix.basename(path, '.parquet')
}

function stateOf(ledger: Ledger, polls: Polls, paths: ReadonlyMap<string, string>): MendedRegistry['state'] {
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

/** When the feed was read last is told too early rather than too late: after the commit that came before. */
function passingOf(ledger: Ledger, { now, before }: Mending): MendedRegistry['passing'] {
  const { polled } = passingFacts(ledger)
  const limit = heldPassing(ledger, 'registry.snapshot_limit')
  return passingDraft({
    ...(polled !== null && polled * 1000 > now && { polled: before === undefined ? null : Math.floor(before / 1000) }),
    ...(limit !== undefined && limit.at > now && { snapshotLimit: null }),
  })
}
