import type { Draft, StagedFile } from '../../lake/ledger/draft.ts'
import type { FileEntry, ValueType } from '../../lake/ledger/entry.ts'
import { storedValueTypes, liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { inLake } from '../../lake/store/layout.ts'
import { namedSql, ruledSql, sharesOf } from './files.ts'
import { rowsAsNumbers, rowsSql, statement } from './sql.ts'

/** A file of points that is looked into; `path` is relative to the lake. */
type Shown = Pick<FileEntry, 'path' | 'metric' | 'interval' | 'rows' | 'meta'>

/** A type at a place and the first instants at which it could be known, microseconds; null: never by that clock. */
interface Place extends Pick<ValueType, 'metric' | 'path' | 'parent' | 'type' | 'after'> {
  readonly available: number | null
  readonly ruled: number | null
}

/** A type at a place as some points show it, with the last timestamps. */
interface Sight extends Place {
  readonly available: number
  readonly ruled: number
  readonly latest: number
  readonly latest_ruled: number
}

/** The most places that are learnt of one metric. */
const mostPlaces = 2000

const anywhere = (column: string): string => `regexp_replace(${column}, '\\[[0-9]+\\]', '[*]', 'g')`
const fragments = {
  path: anywhere('place'),
  type: `CASE type WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' WHEN 'VARCHAR' THEN 'string'
    WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' ELSE 'number' END`,
}

/**
 * Finds new facts about the types of values in files that are about to be committed: a type at a position, an earlier
 * time for it, or its reappearance after a different type. One statement is enough if no type changed. For metrics
 * without any record, all stored points are read.
 */
export async function freshValueTypes(
  ledger: Ledger,
  engine: Engine,
  files: readonly StagedFile[],
): Promise<ValueType[]> {
  const fresh = files.map((file) => ({ ...file, path: file.temporary ?? file.path }))
  const metrics = metricsOf(fresh)
  const recordedTypes = storedValueTypes(ledger, metrics)
  const described = new Set(recordedTypes.map(({ metric }) => metric))
  const undescribed = metrics.filter((metric) => !described.has(metric))
  const selectsOf = (of: readonly string[]): string[] =>
    of.length === 0 ? [] : shownSql(ledger, liveFiles(ledger, { table: 'points' }), of)
  return await learn(engine, recordedTypes, [...shownSql(ledger, fresh, metrics), ...selectsOf(undescribed)], selectsOf)
}

/** Determines the types of values after files were redated: everything recorded about their metrics is replaced. */
export async function valueTypesAnew(
  ledger: Ledger,
  engine: Engine,
  { add, remove }: { readonly add: readonly StagedFile[]; readonly remove: readonly string[] },
): Promise<Pick<Draft, 'retyped' | 'value_types'>> {
  const fresh = add.map((file) => ({ ...file, path: file.temporary ?? file.path }))
  const retyped = metricsOf(fresh)
  const removedPaths = new Set(remove)
  const keptFiles = liveFiles(ledger, { table: 'points' }).filter(({ path }) => !removedPaths.has(path))
  const value_types = await learn(engine, [], shownSql(ledger, [...fresh, ...keptFiles], retyped), () => [])
  return { retyped, value_types }
}

function metricsOf(files: readonly Shown[]): string[] {
  return [...new Set(files.flatMap((file) => sharesOf(file).map(({ metric }) => metric)))]
}

/**
 * Finds the types of the values in some SELECTs (metric, v, o, available, ruled) by position, with their first and last
 * times.
 */
export async function sightsOf(engine: Engine, selects: readonly string[]): Promise<Omit<Sight, 'after'>[]> {
  if (selects.length === 0) return []
  const shown = selects.join(' UNION ALL ')
  return await rowsAsNumbers(
    engine,
    statement('value_types', { shown, ...fragments, parent: anywhere('above'), most: mostPlaces }),
  )
}

/**
 * Finds the facts in the points of some SELECTs that are not recorded yet; `metricFiles` returns SELECTs of all points
 * of some metrics.
 */
async function learn(
  engine: Engine,
  recordedTypes: readonly ValueType[],
  selects: readonly string[],
  metricFiles: (metrics: readonly string[]) => readonly string[],
): Promise<ValueType[]> {
  const sights = (await sightsOf(engine, selects)).map((sight) => ({ ...sight, after: null }))
  const memory = memoryOf(recordedTypes)
  const fresh = sights.filter(
    (sight) => (memory.places.has(keyOf(sight)) || learnsMore(memory, sight)) && remember(memory, sight),
  )
  const moved = new Set(fresh.map(pathOf).filter((path) => (memory.types.get(path) ?? []).length > 1))
  const again = [...Map.groupBy(sights, pathOf)].flatMap(([path, sightsOfPath]) =>
    cameAgain(memory, sightsOfPath, moved.has(path)),
  )
  if (again.length === 0) return fresh.map(rowOf)
  const columns =
    'metric VARCHAR, path VARCHAR, parent VARCHAR, type VARCHAR, after VARCHAR, since BIGINT, ruled_since BIGINT'
  const metrics = [...new Set(fresh.filter((sight) => moved.has(pathOf(sight))).map(({ metric }) => metric))]
  const all = [...selects, ...metricFiles(metrics)].join(' UNION ALL ')
  const rows = await rowsAsNumbers<Place>(
    engine,
    statement('returned_value_types', { shown: all, again: rowsSql(columns, again), ...fragments }),
  )
  return [...fresh, ...rows.filter((row) => remember(memory, row))].map(rowOf)
}

/**
 * Lists pairs of types at one path of which the first may have reappeared after the second, with the time from which on
 * this is possible: if these points can show it or, when a first time has `moved`, any.
 */
function cameAgain({ places, types }: Memory, sights: readonly Sight[], moved: boolean): object[] {
  const [{ metric, path, parent } = { metric: '', path: '', parent: null }] = sights
  const pathTypes = types.get(pathOf({ metric, path })) ?? []
  return pathTypes.flatMap((type) =>
    pathTypes.flatMap((after) => {
      const [first, other] = [type, after].map((placeType) =>
        places.get(keyOf({ metric, path, type: placeType, after: null })),
      )
      if (type === after || !first || !other) return []
      const knownPlace = places.get(keyOf({ metric, path, type, after }))
      const since = behind(first.available, other.available)
      const ruled_since = behind(first.ruled, other.ruled)
      const sight = sights.find((sameType) => sameType.type === type)
      const isTold =
        (since !== null && sight && sight.latest > since && sight.available < (knownPlace?.available ?? Infinity)) ||
        (ruled_since !== null &&
          sight &&
          sight.latest_ruled > ruled_since &&
          sight.ruled < (knownPlace?.ruled ?? Infinity))
      const isOwed = moved && (since ?? ruled_since) !== null
      return isTold === true || isOwed ? [{ metric, path, parent, type, after, since, ruled_since }] : []
    }),
  )
}

/** Returns the time of the other type if it is later; null if not. */
function behind(first: number | null, other: number | null): number | null {
  return first !== null && other !== null && first < other ? other : null
}

function learnsMore({ counts }: Memory, { metric }: Place): boolean {
  return (counts.get(metric) ?? 0) < mostPlaces
}

function pathOf({ metric, path }: Pick<Place, 'metric' | 'path'>): string {
  return JSON.stringify([metric, path])
}

/** The facts known so far, by position and type; `types` lists those of each path except null. */
interface Memory {
  readonly places: Map<string, Pick<Place, 'available' | 'ruled'>>
  readonly types: Map<string, ValueType['type'][]>
  readonly counts: Map<string, number>
}

function memoryOf(valueTypes: readonly ValueType[]): Memory {
  const memory: Memory = { places: new Map(), types: new Map(), counts: new Map() }
  for (const row of valueTypes) remember(memory, { ...row, available: row.available_at, ruled: row.ruled_at })
  return memory
}

/** Records a fact; returns whether it was new. */
function remember({ places, types, counts }: Memory, place: Place): boolean {
  const before = places.get(keyOf(place))
  const available = earliest(before?.available, place.available)
  const ruled = earliest(before?.ruled, place.ruled)
  if (before && before.available === available && before.ruled === ruled) return false
  places.set(keyOf(place), { available, ruled })
  if (before || place.after !== null) return available !== null || ruled !== null
  counts.set(place.metric, (counts.get(place.metric) ?? 0) + 1)
  const path = pathOf(place)
  if (place.type !== 'null') types.set(path, [...(types.get(path) ?? []), place.type])
  return true
}

function earliest(before: number | null | undefined, now: number | null): number | null {
  if (before === null || before === undefined) return now
  return now === null ? before : Math.min(before, now)
}

function rowOf({ metric, path, parent, type, after, available, ruled }: Place): ValueType {
  return { metric, path, parent, type, after, available_at: available, ruled_at: ruled }
}

function keyOf({ metric, path, type, after }: Pick<Place, 'metric' | 'path' | 'type' | 'after'>): string {
  return JSON.stringify([metric, path, type, after])
}

/**
 * SELECT of the values of these metrics in some files, with the time from which they could be known; empty if no file
 * has any.
 */
function shownSql(ledger: Ledger, files: readonly Shown[], metrics: readonly string[]): string[] {
  const wantedMetrics = new Set(metrics)
  const isWanted = ({ metric }: { readonly metric: string }): boolean => wantedMetrics.has(metric)
  const metricFiles = files.filter((file) => sharesOf(file).some(isWanted))
  if (metricFiles.length === 0) return []
  const points = namedSql(
    metricFiles.map((file) => ({ ...file, path: inLake(ledger.root, file.path) })),
    'v, o, available_at, available_rule_at',
  )
  const all = metricFiles.every((file) => sharesOf(file).every(isWanted))
  const where = all ? '' : ` WHERE metric IN (${metrics.map(quote).join(', ')})`
  return [
    `SELECT metric, v, o, epoch_us(available_at) AS available, epoch_us(${ruledSql()}) AS ruled FROM ${points}${where}`,
  ]
}
