import { formatInstant } from '../time.ts'

/** A point as it is sent: `t`, its value keys, and `computed_at` where the form has it. */
export type WirePoint = { t: number } & Record<string, unknown>

const chunkSize = 64 * 1024

/** How one body is written: what stands before the points, between them and after them, and one point. */
interface Dialect {
  readonly head: string
  readonly between: string
  readonly tail: string
  readonly write: (point: WirePoint) => string
}

/** The points as a JSON array or as CSV, in chunks of about 64 KiB, made only as fast as they are read. */
export function streamPoints(
  points: Iterable<WirePoint>,
  form: { readonly csv: boolean; readonly humanized: boolean },
): ReadableStream<Uint8Array> {
  const time = form.humanized ? (t: number): string => formatInstant(t) : String
  const dialect = form.csv ? csvDialect(time) : jsonDialect(form.humanized ? (t) => `"${formatInstant(t)}"` : String)
  const encoder = new TextEncoder()
  const iterator = points[Symbol.iterator]()
  let text = dialect.head
  let first = true
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        while (text.length < chunkSize) {
          const next = iterator.next()
          if (next.done) {
            controller.enqueue(encoder.encode(text + dialect.tail))
            controller.close()
            return
          }
          text += first ? dialect.write(next.value) : dialect.between + dialect.write(next.value)
          first = false
        }
        controller.enqueue(encoder.encode(text))
        text = ''
      },
      cancel() {
        iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}

function jsonDialect(time: (t: number) => string): Dialect {
  return {
    head: '[',
    between: ',',
    tail: ']',
    write(point) {
      let text = `{"t":${time(point.t)}`
      for (const key in point) {
        if (key === 't' || point[key] === undefined) continue
        text += `,"${plainKey.test(key) ? key : JSON.stringify(key).slice(1, -1)}":${json(point[key])}`
      }
      return `${text}}`
    },
  }
}

const plainKey = /^[a-z_]+$/

/** A number as the shortest text that reads back as the same double. */
function json(value: unknown): string {
  if (typeof value === 'number' && Number.isFinite(value)) return Object.is(value, -0) ? '-0' : String(value)
  return JSON.stringify(value)
}

function csvDialect(time: (t: number) => string): Dialect {
  return {
    head: 'timestamp,value\n',
    between: '',
    tail: '',
    write: (point) => `${time(point.t)},${cell(point)}\n`,
  }
}

/** The value cell: a number as it is, nothing for null, everything nested as quoted JSON text. */
function cell(point: WirePoint): string {
  const { t: _, computed_at: __, ...rest } = point
  const keys = Object.keys(rest)
  const value = keys.length === 1 && (keys[0] === 'v' || keys[0] === 'o') ? rest[keys[0]] : rest
  if (value === null) return ''
  return typeof value === 'number' ? json(value) : `"${JSON.stringify(value).replaceAll('"', '""')}"`
}
