import type { Json } from '../../lake/ledger/entry.ts'
import { inLake, parseRegistryFile } from '../../lake/store/layout.ts'
import { isHistory } from './merge-files.ts'
import { columnsMark, relation } from '../../sources/registry/columns.ts'
import type { Layers } from '../../sources/registry/dated-tables.ts'
import type { FileListing, FoundFile, LeftOut, LostFolder } from './adopt-files.ts'
import { sortRows } from './adopt-points.ts'
import { snapshotFields, stateDraft } from '../../sources/registry/staging.ts'
import { orNull, real, type Shaped, text } from '../../base/value-checks.ts'
import { LakeError } from '../../base/errors.ts'
import { countRecords } from '../../sources/registry/status.ts'
import { rowsAs } from '../../lake/ledger/index-rows.ts'

/**
 * Placeholder for a lost cursor: no request can send it back, so that a sync begins with a snapshot in a new epoch, and
 * the changes in it happened some time before.
 */
const lostCursor = '\uFFFD'

/** State of the registry, as an entry of the journal stores it. */
type JsonState = { readonly [key: string]: Json }

/** The adopted files of the registry: everything that its history needs, or nothing. */
export interface AdoptedRegistry {
  readonly listings: readonly FileListing[]
  readonly state: JsonState
  /** Files that move aside, each with the reason. */
  readonly others: readonly LeftOut[]
  /** Reason why nothing could be adopted; null if something was, or if there is no file of the registry. */
  readonly refused: string | null
}

const manifestFields = { ...snapshotFields, resource: text, base: text, delta: orNull(text), rows: orNull(real) }

/** One line of the table `snapshots`: which layers showed a table on a date. */
type Manifest = Shaped<typeof manifestFields>

/**
 * Refusal to adopt a history. A gap in the steps would show ended versions as open: a history is adopted whole or not
 * at all.
 */
class Refusal extends Error {}

/** Rebuilds where the registry stood from the files of its tables. */
export async function adoptRegistry(
  folder: LostFolder,
  files: readonly FoundFile[],
  unfit: readonly LeftOut[],
): Promise<AdoptedRegistry> {
  if (files.length === 0) return { listings: [], state: {}, others: unfit, refused: null }
  try {
    return await rebuild(folder, files, unfit)
  } catch (error) {
    const refused = error instanceof Refusal || (error instanceof LakeError && error.kind === 'integrity')
    if (!refused) throw error
    const others = files.map(({ path }) => ({ path, why: `the registry: ${error.message}` }))
    return { listings: [], state: {}, others: [...others, ...unfit], refused: error.message }
  }
}

/** The files of the tables that only grow, by table. */
type Steps = ReadonlyMap<string, readonly FoundFile[]>

async function rebuild(folder: LostFolder, files: readonly FoundFile[], unfit: readonly LeftOut[]) {
  const isDated = ({ path }: { readonly path: string }): boolean => parseRegistryFile(path)?.date !== null
  const torn = unfit.find((leftOut) => parseRegistryFile(leftOut.path) !== undefined && !isDated(leftOut))
  if (torn) throw new Refusal(`${torn.path}: ${torn.why}`)
  const steps = new Map<string, readonly FoundFile[]>()
  const others: LeftOut[] = [...unfit]
  for (const [table, filesOfTable] of Map.groupBy(
    files.filter((file) => !isDated(file)),
    (file) => file.table,
  )) {
    const sorted = await sortRows(folder, filesOfTable)
    const unclear = sorted.others.find(({ why }) => why.startsWith('some'))
    if (unclear) throw new Refusal(`${unclear.path}: ${unclear.why}`)
    steps.set(table, sorted.kept)
    others.push(...sorted.others)
  }
  const manifests = await manifestsOf(folder, steps.get('snapshots') ?? [])
  const dated = new Map(files.filter(isDated).map((file) => [`${file.table}/${nameOf(file)}`, file]))
  const listings = [...steps.values()].flat().map((file): FileListing => ({ file, label: '', meta: {} }))
  const shown = datedListings(manifests, dated)
  const used = new Set(shown.map(({ file }) => file.path))
  for (const file of dated.values()) {
    if (used.has(file.path)) continue
    // A copy still bears the name of the layer that it is a copy of.
    if (await isItself(folder, file)) throw new Refusal(`the snapshot that made ${file.path} is missing`)
    others.push({ path: file.path, why: 'it is a copy: no snapshot names it' })
  }
  await proveOpen(folder, steps, manifests)
  const state = await stateOf(folder, steps, manifests, dated)
  return { listings: [...listings, ...shown], state, others, refused: null }
}

async function isItself({ engine, root }: LostFolder, file: FoundFile): Promise<boolean> {
  const [row] = await engine.rows(
    `SELECT any_value(layer) AS layer FROM ${relation(file.table, pathsOf(root, [file]))}`,
  )
  return row?.['layer'] === nameOf(file)
}

const nameOf = ({ path }: FoundFile): string => parseRegistryFile(path)?.id ?? ''

async function manifestsOf({ engine, root }: LostFolder, files: readonly FoundFile[]): Promise<Manifest[]> {
  const rows = await rowsAs(
    engine,
    manifestFields,
    `SELECT CAST(snapshot_date AS VARCHAR) AS date, epoch_us(observed_at) AS observed_at, as_of, source,
       resource, base, delta, rows
     FROM ${relation('snapshots', pathsOf(root, files))} ORDER BY observed_at, resource`,
  )
  if (rows.length === 0) throw new Refusal('no snapshot is left that shows where it began')
  return rows
}

const pathsOf = (root: string, files: readonly FoundFile[]): string[] => files.map(({ path }) => inLake(root, path))

function columnsOf({ columns }: FoundFile): readonly (readonly [string, string])[] {
  return columns.map(({ name, type }) => [name, type.replace('TIMESTAMP WITH TIME ZONE', 'TIMESTAMPTZ')])
}

/** Lists each layer under every date that it shows. */
function datedListings(manifests: readonly Manifest[], dated: ReadonlyMap<string, FoundFile>): FileListing[] {
  const listings = new Map<string, FileListing>()
  for (const { resource, base, delta, date } of manifests)
    for (const [kind, name] of Object.entries({ base, delta })) {
      if (name === null) continue
      const file = dated.get(`${resource}/${name}`)
      if (!file) throw new Refusal(`the ${kind} ${name} of ${resource} on ${date} is missing or damaged`)
      listings.set(`${date} ${file.path}`, {
        file,
        label: date,
        meta: { layer: kind, columns: columnsMark(columnsOf(file)) },
      })
    }
  return [...listings.values()]
}

/** Proves that the steps lead to the counts of the last snapshot: else files of the history are lost. */
async function proveOpen({ engine, root }: LostFolder, steps: Steps, manifests: readonly Manifest[]): Promise<void> {
  for (const { resource, rows, observed_at, date } of manifests) {
    // For resources that embed records a snapshot may count other rows than history.
    const stepFiles = steps.get(`history.${resource}`) ?? []
    if (rows === null || stepFiles.some(({ columns }) => columns.some(({ name }) => name === 'parent_id'))) continue
    const all = relation(`history.${resource}`, pathsOf(root, stepFiles))
    const until = `(FROM ${all} WHERE "at" <= make_timestamptz(CAST(${observed_at} AS BIGINT)))`
    const { open } = await countRecords(engine, resource, until)
    if (open !== rows)
      throw new Refusal(`the history leads to ${open} ${resource} on ${date}, the snapshot had ${rows}`)
  }
}

async function stateOf(
  { engine, root }: LostFolder,
  steps: Steps,
  manifests: readonly Manifest[],
  dated: ReadonlyMap<string, FoundFile>,
): Promise<JsonState> {
  const snapshots = manifests.map(({ date, observed_at, as_of, source }) => ({ date, observed_at, as_of, source }))
  const first = snapshots[0] ?? null
  const last = snapshots.at(-1) ?? null
  const layers: Record<string, Layers> = {}
  for (const { resource, base, delta, rows, observed_at } of manifests) {
    if (observed_at !== last?.observed_at) continue
    const path = (name: string): string => dated.get(`${resource}/${name}`)?.path ?? ''
    const begun = manifests.find((manifest) => manifest.resource === resource && manifest.base === base)
    const base_at = begun?.observed_at ?? observed_at
    layers[resource] = { base: path(base), base_at, delta: delta === null ? null : path(delta), rows }
  }
  const records: Record<string, number> = {}
  const breaks = new Set<number>()
  for (const [table, files] of steps) {
    if (!isHistory(table)) continue
    const resource = table.slice('history.'.length)
    const source = relation(table, pathsOf(root, files))
    records[resource] = (await countRecords(engine, resource, source)).open
    const inferred = `SELECT DISTINCT epoch_us("at") AS at FROM ${source} WHERE inferred`
    for (const { at } of await rowsAs(engine, { at: real }, inferred)) breaks.add(at)
  }
  // An epoch that changed nothing left no trace: the number is the smallest that it can have been.
  return stateDraft({ cursor: lostCursor, epoch: 1 + breaks.size, first, last, layers, records })
}
