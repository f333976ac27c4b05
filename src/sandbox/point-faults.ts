import { isObject } from '../json.ts'
import type { Fault } from './faults.ts'
import type { WirePoint } from './metrics.ts'

/** Applies the faults that change single points, in their order, to a streamed series; `now` in Unix seconds. */
export function editPoints(faults: readonly Fault[], points: Iterable<WirePoint>, now: number): Iterable<WirePoint> {
  return faults.reduce((edited, fault) => edits[fault.kind]?.(edited, fault, now) ?? edited, points)
}

/** Whether the fault is one of those that `editPoints` knows. */
export function editsPoints(fault: Fault): boolean {
  return Object.hasOwn(edits, fault.kind)
}

type Edit = (points: Iterable<WirePoint>, fault: Fault, now: number) => Iterable<WirePoint>

const each =
  (edit: (point: WirePoint, fault: Fault) => WirePoint[]): Edit =>
  (points, fault) =>
    atChosen(points, fault, false, (point) => edit(point, fault))

/** Another shape of values, from an instant on. */
const reshaped = (reshape: (point: WirePoint) => WirePoint): Edit =>
  function* from(points, { t = 0 }) {
    for (const point of points) yield point.t >= t ? reshape(point) : point
  }

const edits: { readonly [K in Fault['kind']]?: Edit } = {
  disorder: (points, { block = 8 }) => reversedBlocks(points, Math.max(2, block)),
  late: (points, fault, now) => {
    const everyPoint = fault.t === undefined && fault.point === undefined
    return atChosen(points, fault, everyPoint, (point) => late(point, fault, now))
  },
  rewrite: each((point, fault) => [withOtherValue(point, fault)]),
  vanished: each(() => []),
  duplicate: each((point) => [point, { ...point }]),
  'duplicate-conflict': each((point, fault) => [point, withOtherValue(point, fault)]),
  'computed-at-changed': each((point, { delay = 3600 }) => [{ ...point, computed_at: computedAt(point) + delay }]),
  'null-filled': each((point) => [withNull(point)]),
  'new-component': reshaped((point) => {
    const key = valueKeys(point).find((name) => isObject(point[name]))
    return key === undefined ? point : { ...point, [key]: { ...(point[key] as object), newcomer: 1 } }
  }),
  'becomes-object': reshaped((point) =>
    typeof point['v'] === 'number' ? { ...point, v: { total: point['v'], part: point['v'] / 2 } } : point,
  ),
}

/** Hidden until its instant; then its `computed_at` tells that it was late. */
function late(point: WirePoint, fault: Fault, now: number): WirePoint[] {
  const shown = fault.shown ?? computedAt(point) + (fault.delay ?? 0)
  if (now < shown) return []
  const known = point.computed_at
  return typeof known === 'number' && known < shown ? [{ ...point, computed_at: Math.ceil(shown) }] : [point]
}

function computedAt(point: WirePoint): number {
  return typeof point.computed_at === 'number' ? point.computed_at : point.t
}

/** The points with the chosen ones replaced; holds at most `|point|` of them back. */
function* atChosen(
  points: Iterable<WirePoint>,
  fault: Fault,
  everyPoint: boolean,
  apply: (point: WirePoint) => WirePoint[],
): Iterable<WirePoint> {
  const first = fault.point ?? 0
  const n = fault.n ?? 1
  if (first < 0 && fault.t === undefined) {
    yield* atEnd(points, -first, n, apply)
    return
  }
  let index = 0
  for (const point of points) {
    const hit = everyPoint || (fault.t === undefined ? index >= first && index < first + n : point.t === fault.t)
    if (hit) yield* apply(point)
    else yield point
    index++
  }
}

function* atEnd(
  points: Iterable<WirePoint>,
  back: number,
  n: number,
  apply: (point: WirePoint) => WirePoint[],
): Iterable<WirePoint> {
  const held: WirePoint[] = []
  for (const point of points) {
    held.push(point)
    if (held.length > back) yield* held.splice(0, 1)
  }
  const missing = back - held.length
  for (const [index, point] of held.entries()) {
    if (index + missing < n) yield* apply(point)
    else yield point
  }
}

function* reversedBlocks(points: Iterable<WirePoint>, size: number): Iterable<WirePoint> {
  let block: WirePoint[] = []
  for (const point of points) {
    block.push(point)
    if (block.length < size) continue
    yield* block.toReversed()
    block = []
  }
  yield* block.toReversed()
}

/** The keys of a point that hold its value. */
function valueKeys(point: WirePoint): string[] {
  return Object.keys(point).filter((key) => key !== 't' && key !== 'computed_at')
}

function withOtherValue(point: WirePoint, fault: Fault): WirePoint {
  const factor = fault.by ?? 1.01
  const replace = (old: number) => fault.v ?? (old === 0 ? 1 : old * factor)
  for (const key of valueKeys(point)) {
    const changed = changeFirstNumber(point[key], replace)
    if (changed !== undefined) return { ...point, [key]: changed }
  }
  return { ...point, [valueKeys(point)[0] ?? 'v']: replace(0) }
}

/** A copy with its first number replaced; undefined when it holds none. */
function changeFirstNumber(value: unknown, replace: (old: number) => number): unknown {
  if (typeof value === 'number') return replace(value)
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const changed = changeFirstNumber(inner, replace)
    if (changed === undefined) continue
    if (Array.isArray(value)) return value.with(Number(key), changed)
    return { ...value, [key]: changed }
  }
  return undefined
}

function withNull(point: WirePoint): WirePoint {
  const nulled: WirePoint = { ...point }
  for (const key of valueKeys(point)) nulled[key] = null
  return nulled
}
