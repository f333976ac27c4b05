import type { Engine, Row } from '../store/engine.ts'
import type { Json } from '../ledger/entry.ts'
import { quote } from '../store/engine.ts'
import { inLake, parseRegistryFile } from '../store/layout.ts'
import { isHistory } from './merge-history.ts'
import { columnsMark } from '../registry/columns.ts'
import type { Layers } from '../registry/layers.ts'
import { statement, relation } from '../registry/sql.ts'
import type { FoundFile, Unfit } from './adopt-files.ts'
import { sortRows } from './adopt-points.ts'
import { type LastSnapshot, lostCursor, stateDraft } from '../registry/state.ts'

/** A file as the journal is to list it. */
export interface Listing {
  readonly file: FoundFile
  readonly label: string
  readonly meta: { readonly [key: string]: Json }
}

/** What is taken up of the registry: all that its history needs, or nothing. */
export interface AdoptedRegistry {
  readonly listings: readonly Listing[]
  readonly state: { readonly [key: string]: Json }
  readonly others: readonly Unfit[]
  /** Why nothing of it could be taken up; null where it was, or where there is none. */
  readonly refused: string | null
}

/** One line of the table `snapshots`: which layers showed a table on a date. */
interface Manifest extends LastSnapshot {
  readonly resource: string
  readonly base: string
  readonly delta: string | null
  readonly rows: number | null
}

/** A gap in the steps would show what is gone as open: the history is taken up whole or not at all. */
class Refusal extends Error {}

/** Rebuilds where the registry stood from the files of its tables. */
export async function adoptRegistry(
  engine: Engine,
  root: string,
  files: readonly FoundFile[],
  unfit: readonly Unfit[],
): Promise<AdoptedRegistry> {
  if (files.length === 0) return { listings: [], state: {}, others: unfit, refused: null }
  try {
    return await rebuild(engine, root, files, unfit)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const others = files.map(({ path }) => ({ path, why: `the registry: ${error.message}` }))
    return { listings: [], state: {}, others: [...others, ...unfit], refused: error.message }
  }
}

async function rebuild(
  engine: Engine,
  root: string,
  files: readonly FoundFile[],
  unfit: readonly Unfit[],
): Promise<AdoptedRegistry> {
  const isDated = ({ path }: { readonly path: string }): boolean => parseRegistryFile(path)?.date !== null
  const torn = unfit.find((one) => parseRegistryFile(one.path) !== undefined && !isDated(one))
  if (torn) throw new Refusal(`${torn.path}: ${torn.why}`)
  const steps = new Map<string, readonly FoundFile[]>()
  const others: Unfit[] = [...unfit]
  for (const [table, own] of Map.groupBy(
    files.filter((file) => !isDated(file)),
    (file) => file.table,
  )) {
    const sorted = await sortRows(engine, root, own)
    const unclear = sorted.others.find(({ why }) => why.startsWith('some'))
    if (unclear) throw new Refusal(`${unclear.path}: ${unclear.why}`)
    steps.set(table, sorted.kept)
    others.push(...sorted.others)
  }
  const manifests = await manifestsOf(engine, root, steps.get('snapshots') ?? [])
  const dated = new Map(files.filter(isDated).map((file) => [`${file.table}/${nameOf(file)}`, file]))
  const listings = [...steps.values()].flat().map((file): Listing => ({ file, label: '', meta: {} }))
  const shown = datedListings(manifests, dated)
  const used = new Set(shown.map(({ file }) => file.path))
  for (const file of dated.values()) {
    if (used.has(file.path)) continue
    // A copy still bears the name of the layer that it is a copy of.
    if (await isItself(engine, root, file)) throw new Refusal(`the snapshot that made ${file.path} is missing`)
    others.push({ path: file.path, why: 'it is a copy: no snapshot names it' })
  }
  await proveOpen(engine, root, steps, manifests)
  const state = await stateOf(engine, root, steps, manifests, dated)
  return { listings: [...listings, ...shown], state, others, refused: null }
}

async function isItself(engine: Engine, root: string, file: FoundFile): Promise<boolean> {
  const [row] = await engine.rows(
    `SELECT any_value(layer) AS layer FROM ${relation(file.table, pathsOf(root, [file]))}`,
  )
  return row?.['layer'] === nameOf(file)
}

function nameOf({ path }: FoundFile): string {
  return parseRegistryFile(path)?.id ?? ''
}

async function manifestsOf(engine: Engine, root: string, files: readonly FoundFile[]): Promise<Manifest[]> {
  const rows = await engine.rows<Manifest & Row>(
    `SELECT CAST(snapshot_date AS VARCHAR) AS date, CAST(epoch_us(observed_at) AS DOUBLE) AS observed_at, as_of, source,
       resource, base, delta, CAST(rows AS DOUBLE) AS rows
     FROM ${relation('snapshots', pathsOf(root, files))} ORDER BY observed_at, resource`,
  )
  if (rows.length === 0) throw new Refusal('no snapshot is left that tells where it began')
  return rows
}

function pathsOf(root: string, files: readonly FoundFile[]): string[] {
  return files.map(({ path }) => inLake(root, path))
}

function columnsOf({ columns }: FoundFile): readonly (readonly [string, string])[] {
  return columns.map(({ name, type }) => [name, type.replace('TIMESTAMP WITH TIME ZONE', 'TIMESTAMPTZ')])
}

/** Each layer under every date that it shows. */
function datedListings(manifests: readonly Manifest[], dated: ReadonlyMap<string, FoundFile>): Listing[] {
  const found = new Map<string, Listing>()
  for (const { resource, base, delta, date } of manifests)
    for (const [kind, name] of Object.entries({ base, delta })) {
      if (name === null) continue
      const file = dated.get(`${resource}/${name}`)
      if (!file) throw new Refusal(`the ${kind} ${name} of ${resource} on ${date} is missing or damaged`)
      found.set(`${date} ${file.path}`, {
        file,
        label: date,
        meta: { layer: kind, columns: columnsMark(columnsOf(file)) },
      })
    }
  return [...found.values()]
}

/** The steps must lead to what the last snapshot counted: else files of the history are lost. */
async function proveOpen(
  engine: Engine,
  root: string,
  steps: ReadonlyMap<string, readonly FoundFile[]>,
  manifests: readonly Manifest[],
): Promise<void> {
  for (const { resource, rows, observed_at, date } of manifests) {
    // Of what records embed a snapshot may count other rows than history.
    const own = steps.get(`history.${resource}`) ?? []
    if (rows === null || own.some(({ columns }) => columns.some(({ name }) => name === 'parent_id'))) continue
    const [row] = await engine.rows(
      `SELECT CAST(count(*) FILTER (WHERE open) AS DOUBLE) AS open FROM (SELECT max_by(op IS NOT NULL, "at") AS open
         FROM ${relation(`history.${resource}`, pathsOf(root, own))}
         WHERE "at" <= make_timestamptz(CAST(${observed_at} AS BIGINT)) GROUP BY id)`,
    )
    if (Number(row?.['open']) !== rows)
      throw new Refusal(
        `the history leads to ${Number(row?.['open'])} ${resource} on ${date}, the snapshot had ${rows}`,
      )
  }
}

async function stateOf(
  engine: Engine,
  root: string,
  steps: ReadonlyMap<string, readonly FoundFile[]>,
  manifests: readonly Manifest[],
  dated: ReadonlyMap<string, FoundFile>,
): Promise<AdoptedRegistry['state']> {
  const told = manifests.map(({ date, observed_at, as_of, source }) => ({ date, observed_at, as_of, source }))
  const last = told.at(-1)
  const layers: Record<string, Layers> = {}
  for (const { resource, base, delta, rows, observed_at } of manifests) {
    if (observed_at !== last?.observed_at) continue
    const path = (name: string): string => dated.get(`${resource}/${name}`)?.path ?? ''
    const first = manifests.find((one) => one.resource === resource && one.base === base) ?? { observed_at }
    layers[resource] = {
      base: path(base),
      base_at: first.observed_at,
      delta: delta === null ? null : path(delta),
      rows,
    }
  }
  const records: Record<string, number> = {}
  const breaks = new Set<number>()
  for (const [table, files] of steps) {
    if (!isHistory(table)) continue
    const resource = table.slice('history.'.length)
    const source = relation(table, pathsOf(root, files))
    const [row] = await engine.rows(statement('counts', { resource: quote(resource), steps: source }))
    records[resource] = Number(row?.['open'] ?? 0)
    const inferred = await engine.rows(
      `SELECT DISTINCT CAST(epoch_us("at") AS DOUBLE) AS at FROM ${source} WHERE inferred`,
    )
    for (const { at } of inferred) breaks.add(Number(at))
  }
  // An epoch that changed nothing left no trace: the number is the smallest that it can have been.
  return stateDraft({
    cursor: lostCursor,
    epoch: 1 + breaks.size,
    first: told[0] ?? null,
    last: last ?? null,
    layers,
    records,
  })
}
