import { posix } from 'node:path'
import type { Draft, StagedFile, Ticket } from '../ledger/draft.ts'
import { formatDate, type Micros } from '../time.ts'
import { type HeldFile, heldPassing, liveFiles } from '../ledger/held.ts'
import { parseRegistryFile, places, registryFile } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type Mending, redateInstants } from './instants-registry.ts'
import { registryState, type RegistryState, passingDraft, passingFacts, stateDraft } from '../registry/state.ts'
import { type Rewriting, footerOf, replacement } from './rewrite.ts'

/** What a clock far ahead has dated, for the tables that keep the instants of their polls. */
export interface WrongInstants {
  /** The first version that it dated. */
  readonly first: number
  /** What is later than this never was. */
  readonly now: Micros
  /** The commit before it; undefined where there was none. */
  readonly before: Micros | undefined
  /** The wrong instants of polls, in their order. */
  readonly instants: readonly Micros[]
  readonly ticket: Ticket
  /** Files of the spool are numbered from here on. */
  readonly from: number
}

/** The mending of these tables as a part of a draft. */
export interface MendedRegistry extends Required<Pick<Draft, 'add' | 'remove' | 'state' | 'passing'>> {
  readonly rows: number
  /** How many files of the spool it took. */
  readonly files: number
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
export async function mendRegistry(rewriting: Rewriting, wrong: WrongInstants): Promise<MendedRegistry> {
  const { ticket, instants, now } = wrong
  const last = ticket.committed_at
  const spread = new Map(instants.map((at, i) => [at, last - (instants.length - 1 - i)]))
  const layers = new Map<string, string>()
  const paths = new Map<string, string>()
  const mending = { now, instants: spread, observedAt: last, date: formatDate(last / 1e6), layers }
  const add: StagedFile[] = []
  let rows = 0
  const polled = liveFiles(rewriting.ledger).filter(
    ({ path }) => parseRegistryFile(path) !== undefined || path.startsWith(`${places.assets}/`),
  )
  // Dated tables come first: their new names stand in `snapshots`.
  const [dated, others] = [true, false].map((is) => polled.filter(({ label }) => (label !== '') === is))
  for (const [path, listed] of Map.groupBy([...(dated ?? []), ...(others ?? [])], (file) => file.path)) {
    const staged = await mendFile(rewriting, wrong, mending, listed, wrong.from + paths.size)
    if (staged === null) {
      add.push(...listedToday(listed, wrong.first, mending.date))
      continue
    }
    add.push(staged)
    paths.set(path, staged.path)
    rows += staged.rows
  }
  const raw = relabelled(rewriting.ledger, wrong.first, mending.date)
  return {
    add: [...add, ...raw],
    remove: [...paths.keys(), ...raw.map(({ path }) => path)],
    state: stateOf(rewriting.ledger, mending, paths),
    passing: passingOf(rewriting.ledger, wrong),
    rows,
    files: paths.size,
  }
}

/** A file written anew; null where it was not made by the wrong clock. */
async function mendFile(
  rewriting: Rewriting,
  { first, ticket }: WrongInstants,
  mending: Mending & { readonly layers: Map<string, string> },
  listed: readonly HeldFile[],
  n: number,
): Promise<StagedFile | null> {
  const [file] = listed
  if (!file || listed.some(({ added_version }) => added_version < first)) return null
  const { engine, ledger, spool } = rewriting
  const { rows, digest, min_t, max_t, meta } = file
  const staged = replacement(rewriting, n, [file], { rows, digest, min_t, max_t, meta })
  const layer = `${layerOf(file.path)}-v${ticket.version}`
  // The rows of a dated file name it, and so does its snapshot; those of one poll have one name in all tables.
  if (file.label !== '') mending.layers.set(layerOf(file.path), layer)
  const job = { ...mending, root: ledger.root, file, out: spool.file(`${n}.parquet`) }
  const written = await redateInstants(engine, { ...job, metadata: footerOf(ledger, [file]) })
  if (file.label === '') return written && { ...staged, ...written }
  if (written === null) throw new RangeError(`${file.path} has another instant than its version`)
  return { ...staged, ...written, path: registryFile(file.table, layer, mending.date), label: mending.date }
}

/** A layer of before that a wrong date is made of is one of the true date. */
function listedToday(listed: readonly HeldFile[], first: number, date: string): StagedFile[] {
  const [file] = listed
  const wrong = listed.some(({ label, added_version }) => added_version >= first && label !== '')
  if (!file || !wrong || listed.some(({ label }) => label === date)) return []
  return [listedAs(file, date)]
}

function listedAs(file: HeldFile, label: string): StagedFile {
  const { path, table, metric, interval, rows, min_t, max_t, digest, meta } = file
  return { temporary: null, path, table, label, metric, interval, rows, min_t, max_t, digest, meta }
}

/** Bodies that only the wrong clock has listed: they would be kept until its day comes. */
function relabelled(ledger: Ledger, first: number, date: string): StagedFile[] {
  const listed = Map.groupBy(liveFiles(ledger, { table: 'raw' }), (file) => file.path)
  return [...listed.values()].flatMap((files) => {
    const [file] = files
    const wrong = files.every(({ label, added_version }) => added_version >= first && label > date)
    return file && wrong ? [listedAs(file, date)] : []
  })
}

function layerOf(path: string): string {
  return posix.basename(path, '.parquet')
}

function stateOf(ledger: Ledger, mending: Mending, paths: ReadonlyMap<string, string>): MendedRegistry['state'] {
  const { first, last, layers } = registryState(ledger)
  const instant = (at: Micros): Micros => (at > mending.now ? (mending.instants.get(at) ?? mending.observedAt) : at)
  const snapshot = (shown: RegistryState['last']): RegistryState['last'] =>
    shown === null || shown.observed_at <= mending.now
      ? shown
      : { ...shown, date: mending.date, observed_at: instant(shown.observed_at) }
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
function passingOf(ledger: Ledger, { now, before }: WrongInstants): MendedRegistry['passing'] {
  const { polled } = passingFacts(ledger)
  const limit = heldPassing(ledger, 'registry.snapshot_limit')
  return passingDraft({
    ...(polled !== null && polled * 1000 > now && { polled: before === undefined ? null : Math.floor(before / 1000) }),
    ...(limit !== undefined && limit.at > now && { snapshotLimit: null }),
  })
}
