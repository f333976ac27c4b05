import type { Fault } from './faults.ts'
import { fraction } from './script.ts'

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

/** What each poison makes of the chosen point, as JSON text (which need not be JSON any more). */
const pointPoisons: { readonly [K in Fault['kind']]?: (point: Point) => string } = {
  'poison-text-t': (point) => JSON.stringify({ ...point, t: String(seconds(point)) }),
  'poison-fractional-t': (point) => JSON.stringify({ ...point, t: seconds(point) + 0.5 }),
  'poison-millisecond-t': (point) => JSON.stringify({ ...point, t: seconds(point) * 1000 }),
  'poison-off-grid-t': (point) => JSON.stringify({ ...point, t: seconds(point) + 7 }),
  'poison-missing-t': (point) => JSON.stringify({ ...point, t: undefined }),
  'poison-boolean-v': (point) => raw(valueFree(point), 'v', 'true'),
  'poison-text-v': (point) => raw(valueFree(point), 'v', '"12.5"'),
  'poison-nan': (point) => raw(valueFree(point), 'v', 'NaN'),
  'poison-overflow': (point) => raw(valueFree(point), 'v', '1e400'),
}

/** Whether the fault replaces bytes of a good body. */
export function poisons(fault: Fault): boolean {
  return fault.kind.startsWith('poison-')
}

/** The answer with a poisoned body; other than noise it is held in memory, as poison is small. */
export async function poison(response: Response, fault: Fault, seed: number): Promise<Response> {
  const { status } = response
  const headers = new Headers(response.headers)
  for (const name of ['content-length', 'etag']) headers.delete(name)
  if (fault.kind === 'poison-noise') {
    await response.body?.cancel()
    return new Response(noise((fault.mb ?? 50) * 1_000_000, seed), { status, headers })
  }
  return new Response(poisonedBody(await response.text(), fault), { status, headers })
}

function poisonedBody(body: string, fault: Fault): string | Uint8Array<ArrayBuffer> {
  if (fault.kind === 'poison-null') return 'null'
  if (fault.kind === 'poison-object') return body.startsWith('[') ? `{"data":${body}}` : `[${body}]`
  if (fault.kind === 'poison-bad-utf8') {
    const [before, after] = insideFirstObject(body)
    const bytes = new TextEncoder()
    return Buffer.concat([
      bytes.encode(`${before}"note":"`),
      Uint8Array.of(0xc3, 0x28, 0xff),
      bytes.encode(`"${after}`),
    ])
  }
  if (fault.kind === 'poison-deep') {
    const [before, after] = insideFirstObject(body)
    const depth = fault.depth ?? 200
    return `${before}"deep":${'['.repeat(depth)}1${']'.repeat(depth)}${after}`
  }
  const change = pointPoisons[fault.kind]
  return change === undefined ? body : atPoint(body, fault.point ?? 0, change)
}

/** The body cut open behind its first `{`; a body without object becomes a list of one. */
function insideFirstObject(body: string): [string, string] {
  const at = body.indexOf('{')
  if (at < 0) return ['[{"t":0,"v":0,', '}]']
  const rest = body.slice(at + 1)
  return [body.slice(0, at + 1), rest.trimStart().startsWith('}') ? rest : `,${rest}`]
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

/** Printable noise of the given length, one block at a time. */
function noise(length: number, seed: number): ReadableStream<Uint8Array> {
  const block = new Uint8Array(65_536).map((_, i) => 33 + Math.floor(fraction(`${seed} ${i}`) * 94))
  let left = length
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const size = Math.min(left, block.length)
      if (size > 0) controller.enqueue(block.slice(0, size))
      left -= size
      if (left <= 0) controller.close()
    },
  })
}
