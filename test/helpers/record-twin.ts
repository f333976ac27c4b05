import { createHash } from 'node:crypto'

/** A point as it is held, instants in microseconds; what is not told of its clocks is null. */
export interface HeldPoint {
  readonly t: number
  readonly available: number
  readonly seen: number
  readonly computed: number | null
  readonly ruled: number | null
  readonly v: number | null
  readonly o: string | null
  readonly extra: string | null
  readonly basis: string
}

/** What a point may be known by, in the order of their numbers. */
export const bases = ['provider', 'observed', 'stated', 'assumed', 'override']
/** Milliseconds, as pages of proofs tell instants. */
export const ms = (micros: number): number => Math.ceil(micros / 1000)
const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** What docs/explanation/proof.md tells of a point: four numbers, and a text. */
function record({ t, available, computed, ruled, v, o, extra, basis }: HeldPoint): readonly [Buffer, Buffer] {
  const sized = (sign: string, text: string | null): string[] =>
    text === null ? [] : [`${sign}${Buffer.byteLength(text)} ${text}`]
  const rest = [
    ...(computed !== null && (basis !== 'provider' || ms(computed) !== ms(available)) ? [`c${ms(computed)}`] : []),
    ...(ruled !== null && ms(ruled) !== ms(available) ? [`r${ms(ruled)}`] : []),
    ...sized('o', o),
    ...sized('x', extra),
  ].join(' ')
  const view = new DataView(new ArrayBuffer(32))
  const form = 8 * Buffer.byteLength(rest) + bases.indexOf(basis)
  for (const [n, one] of [ms(t), v ?? Number.NaN, ms(available), form].entries()) view.setFloat64(8 * n, one)
  return [Buffer.from(view.buffer), Buffer.from(rest)]
}

/** The steps in which the points of a month were seen, in their order: instant, points and the digest of their records. */
export function stepsOf(month: readonly HeldPoint[]): string[] {
  const steps = [...Map.groupBy(month, ({ seen }) => ms(seen))].toSorted(([a], [b]) => a - b)
  return steps.map(([seen, some]) => {
    const records = some.map(record).toSorted((a, b) => Buffer.compare(Buffer.concat(a), Buffer.concat(b)))
    const bytes = [...records.map(([numbers]) => numbers), ...records.map(([, text]) => text)]
    return `${seen} ${some.length} ${sha(Buffer.concat(bytes))}`
  })
}
