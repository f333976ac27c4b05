import { type Identity, identityColumns } from '../store/footers.ts'
import type { Body, PartJob } from './conversion.ts'

/** A body in the order of writing: by series as the file is sorted, then by what was asked. */
export interface Ordered {
  readonly body: Body
  /** Its partition, and the position of that in the batch. */
  readonly part: PartJob
  readonly p: number
  /** Position in its partition: the order of asking. */
  readonly ord: number
  /** Number of the series in the batch. */
  readonly rank: number
}

/** The body of a position, as SQL tells it: there is one, or something is very wrong. */
export function bodyAt(ordered: readonly Ordered[], position: number): Ordered {
  const found = ordered[position]
  if (found === undefined) throw new RangeError(`no body stands at ${position}`)
  return found
}

/** Sorts bodies as their points will be sorted: partition, asset, currency, exchange, network, params, then asked range. */
export function order(parts: readonly PartJob[]): Ordered[] {
  const keyed = parts.flatMap((part, p) => part.bodies.map((body, ord) => ({ body, part, p, ord, key: sortKey(body) })))
  keyed.sort(
    (a, b) =>
      a.p - b.p ||
      Buffer.compare(a.key, b.key) ||
      (a.body.since ?? -Infinity) - (b.body.since ?? -Infinity) ||
      a.ord - b.ord,
  )
  let rank = -1
  return keyed.map(({ key, ...one }, i) => {
    const before = keyed[i - 1]
    if (before?.p !== one.p || Buffer.compare(before.key, key) !== 0) rank++
    return { ...one, rank }
  })
}

/** A series as the columns of its points name it. */
export function identityOf({ asset, currency, exchange, network, params }: Body['series']): Identity {
  return { asset, currency, exchange, network, params: paramsText(params) }
}

/** Bytes that compare like the columns do, NULL last. */
function sortKey({ series }: Body): Buffer {
  const own = identityOf(series)
  const parts = identityColumns.map((name) => own[name])
  return Buffer.concat(parts.flatMap((part) => (part === null ? [Buffer.of(0xff)] : [Buffer.from(part), Buffer.of(0)])))
}

/** The further parameters of a series as JSON text with sorted keys; null where there are none. */
export function paramsText(params: Readonly<Record<string, string>>): string | null {
  const entries = Object.entries(params).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries))
}
