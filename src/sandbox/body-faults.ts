import { isObject } from '../base/json.ts'
import type { WirePoint } from './metrics-body.ts'
import type { Fault, FaultKind } from './faults.ts'

/** Applies the faults that change single points, in their order, to a streamed series; `now` in Unix seconds. */
export function editPoints(faults: readonly Fault[], points: Iterable<WirePoint>, now: number): Iterable<WirePoint> {
  return faults.reduce((edited, fault) => edits[fault.kind]?.(edited, fault, now) ?? edited, points)
}

type Edit = (points: Iterable<WirePoint>, fault: Fault, now: number) => Iterable<WirePoint>

const each =
  (edit: (point: WirePoint, fault: Fault) => WirePoint[]): Edit =>
  (points, fault) =>
    atChosen(points, fault, false, (point) => edit(point, fault))

/** Values of a different shape, from a timestamp on. */
const reshaped = (reshape: (point: WirePoint) => WirePoint): Edit =>
  function* from(points, { t = 0 }) {
    for (const point of points) yield point.t >= t ? reshape(point) : point
  }

const edits: { readonly [K in FaultKind]?: Edit } = {
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

/** Hides a point until its instant; then its `computed_at` shows that it was late. */
function late(point: WirePoint, fault: Fault, now: number): WirePoint[] {
  const shown = fault.shown ?? computedAt(point) + (fault.delay ?? 0)
  if (now < shown) return []
  const computed = point.computed_at
  return typeof computed === 'number' && computed < shown ? [{ ...point, computed_at: Math.ceil(shown) }] : [point]
}

const computedAt = (point: WirePoint): number => (typeof point.computed_at === 'number' ? point.computed_at : point.t)

/** Replaces the chosen points; holds at most `|point|` of them back. */
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

function* atEnd(points: Iterable<WirePoint>, back: number, n: number, apply: (point: WirePoint) => WirePoint[]) {
  const waiting: WirePoint[] = []
  for (const point of points) {
    waiting.push(point)
    if (waiting.length > back) yield* waiting.splice(0, 1)
  }
  const missing = back - waiting.length
  for (const [index, point] of waiting.entries()) {
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

/** Lists the keys of a point with its value. */
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

/** Copies a value with its first number replaced; undefined if it has none. */
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

type Point = Record<string, unknown>

const raw = (fields: Point, name: string, text: string): string => {
  const rest = Object.entries(fields).filter(([key]) => key !== name)
  const parts = rest.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
  return `{${[...parts.slice(0, 1), `${JSON.stringify(name)}:${text}`, ...parts.slice(1)].join(',')}}`
}

const valueFree = (point: Point): Point =>
  Object.fromEntries(Object.entries(point).filter(([key]) => key === 't' || key === 'computed_at'))

const seconds = (point: Point): number =>
  typeof point.t === 'number' ? point.t : Math.floor(Date.parse(String(point.t)) / 1000)

/** Poisons by kind: each rewrites the chosen point as JSON text (which need not be JSON any more). */
const pointPoisons: { readonly [K in FaultKind]?: (point: Point) => string } = {
  'poison-millisecond-t': (point) => JSON.stringify({ ...point, t: seconds(point) * 1000 }),
  'poison-text-v': (point) => raw(valueFree(point), 'v', '"12.5"'),
  'poison-nan': (point) => raw(valueFree(point), 'v', 'NaN'),
  'poison-overflow': (point) => raw(valueFree(point), 'v', '1e400'),
}

/** Poisons the body of an answer, which is read into memory: poison is small. */
export async function poison(response: Response, fault: Fault): Promise<Response> {
  const { status } = response
  const headers = new Headers(response.headers)
  for (const name of ['content-length', 'etag']) headers.delete(name)
  const body = await response.text()
  const change = pointPoisons[fault.kind]
  const wrapped = body.startsWith('[') ? `{"data":${body}}` : `[${body}]`
  return new Response(change === undefined ? wrapped : atPoint(body, fault.point ?? 0, change), { status, headers })
}

function atPoint(body: string, position: number, change: (point: Point) => string): string {
  let points: unknown
  try {
    points = JSON.parse(body)
  } catch {
    return body
  }
  if (!Array.isArray(points) || points.length === 0) return body
  const at = Math.min(points.length - 1, position < 0 ? Math.max(0, points.length + position) : position)
  const parts = points.map((point: Point, index) => (index === at ? change(point) : JSON.stringify(point)))
  return `[${parts.join(',')}]`
}
