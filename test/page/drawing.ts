import type { Engine } from '../../src/lake/store/engine.ts'
import { expect } from 'vitest'

/*
 * What a picture of the page holds, and what it should: computed from points one by one, column of pixels by column.
 */

/** A picture as it is drawn. */
export interface Drawn {
  readonly asOf: string
  readonly x: readonly [number, number]
  readonly y: readonly [number, number]
  readonly width: number
  readonly height: number
  readonly columns: number
  /** What the axis upwards counts: values, logarithms, or the first of each line as 100. */
  readonly scale: string
  readonly paths: Readonly<Record<'known' | 'later' | 'second', Readonly<Record<string, string>>>>
  readonly dots: readonly { readonly asset: string; readonly t: number; readonly v: number; readonly late: boolean }[]
}

/** What the picture holds, asked of its browser. */
export const reading = `(() => {
  const svg = document.querySelector('.chart svg')
  const paths = (name) => Object.fromEntries([...svg.querySelectorAll('.' + name + ' .line')].map((g) => [g.dataset.asset, g.querySelector('path').getAttribute('d')]))
  const dots = [...svg.querySelectorAll('.known circle, .later circle')].map((c) => ({ asset: c.closest('.line').dataset.asset, t: Number(c.dataset.t), v: Number(c.dataset.v), late: c.closest('.later') !== null }))
  const pair = (text) => text.split(',').map(Number)
  return { asOf: svg.dataset.asOf, x: pair(svg.dataset.x), y: pair(svg.dataset.y), columns: Number(svg.dataset.columns), scale: svg.dataset.scale,
    width: Number(svg.getAttribute('width')), height: Number(svg.getAttribute('height')),
    paths: { known: paths('known'), later: paths('later'), second: paths('second') }, dots }
})()`

/** A point. */
export interface Raw {
  readonly asset: string
  readonly t: number
  readonly v: number | null
}

/** Where a value stands upwards in a picture, whose line begins with `first`; undefined where it has no place. */
function upward({ y, height, scale }: Drawn, first: number | undefined): (v: number) => number | undefined {
  const bottom = height - 30
  const top = 12
  const even = (at: number, low: number, high: number): number => bottom + ((at - low) / (high - low)) * (top - bottom)
  if (scale === 'log') return (v) => (v > 0 ? even(Math.log(v), Math.log(y[0]), Math.log(y[1])) : undefined)
  if (scale === 'index') return (v) => (first ? even((100 * v) / first, y[0], y[1]) : undefined)
  return (v) => even(v, y[0], y[1])
}

/** The corners that a line through these points has, column by column of pixels. */
function cornersOf(raw: readonly Raw[], asset: string, picture: Drawn): [number, number][] {
  const { x, width, columns, scale } = picture
  const own = raw.filter((point) => point.asset === asset && point.t >= x[0] && point.t < x[1])
  const column = ({ t }: Raw): number => Math.floor(((t - x[0]) * columns) / (x[1] - x[0]))
  const across = (t: number): number => 62 + ((t - x[0]) / (x[1] - x[0])) * (width - 14 - 62)
  const up = upward(picture, own.find(({ v }) => v !== null)?.v ?? undefined)
  return [...Map.groupBy(own, column).values()].flatMap((points) => {
    const values = points.flatMap(({ v }) => (v === null || (scale === 'log' && v <= 0) ? [] : [v]))
    const first = points[0]!
    const last = points.at(-1)!
    const low = values.length === 0 ? null : Math.min(...values)
    const high = values.length === 0 ? null : Math.max(...values)
    const all: Raw[] = points.length <= 2 ? points : [first, { ...first, v: low }, { ...last, v: high }, last]
    return all.flatMap(({ t, v }): [number, number][] => {
      const at = v === null ? undefined : up(v)
      return at === undefined ? [] : [[across(t), at]]
    })
  })
}

const corners = (path = ''): [number, number][] =>
  [...path.matchAll(/[ML]([-\d.]+),([-\d.]+)/g)].map(([, px, py]) => [Number(px), Number(py)])

/** Holds a line against the points that it stands for. */
export function expectLine(path: string | undefined, raw: readonly Raw[], asset: string, picture: Drawn): void {
  const found = corners(path)
  const wanted = cornersOf(raw, asset, picture)
  expect(found.length, `${asset} at ${picture.asOf}`).toBe(wanted.length)
  const off = found.flatMap(([px, py], n) => [Math.abs(px - wanted[n]![0]), Math.abs(py - wanted[n]![1])])
  expect(Math.max(0, ...off)).toBeLessThan(0.011)
}

/** A state to look at, with what of it the address tells. */
export function stateOf(draw: (n: number) => number): Record<string, string> {
  const metric = draw(2) === 0 ? 'supply/current_pit' : 'indicators/one'
  const instant = (): string => new Date(Date.UTC(2024, 0, 1) + draw(2600) * 36e5 + draw(60) * 6e4).toISOString()
  const [since, until] = [instant(), instant()].toSorted()
  // Of decades each column of pixels holds many points.
  const decades = { since: '1990-01-01', until: '2030-01-01' }
  const range: Record<string, string>[] = [{}, decades, since && until && since !== until ? { since, until } : {}]
  return {
    metric,
    assets: ['BTC', 'ETH', 'BTC,ETH'][draw(3)]!,
    ...(draw(5) > 0 && { as_of: instant() }),
    ...(draw(4) === 0 && { second: instant() }),
    ...range[draw(3)],
  }
}

/** Every instant that an answer of the server holds under a name of its own. */
export function instantsIn(text: string): readonly number[] {
  const found: number[] = []
  JSON.parse(text, (name: string, value: unknown) => {
    if (['t', 'available_at', 'committed_at', 'valid_from', 'offered_at', 'at', 't0', 't1', 'a0', 'a1'].includes(name))
      if (typeof value === 'number') found.push(value)
      else if (typeof value === 'string' && /^\d{4}-/.test(value)) found.push(Date.parse(value))
    return value
  })
  return found
}

/** Each line of a picture is what these points come to. */
export function expectLines(
  picture: Drawn,
  points: Partial<Readonly<Record<keyof Drawn['paths'], readonly Raw[]>>>,
): void {
  for (const kind of ['known', 'later', 'second'] as const)
    for (const [asset, path] of Object.entries(picture.paths[kind]))
      if (points[kind]) expectLine(path, points[kind], asset, picture)
}

/** The points of a metric as known at an instant, all of them one by one. */
export async function pointsAt(bare: Engine, metric: string, asOf: string | null): Promise<readonly Raw[]> {
  await bare.run(`SET VARIABLE as_of = ${asOf === null ? 'NULL' : `'${asOf}'`}`)
  const found = await bare.rows<{ asset: string; t: bigint; v: number | null }>(
    `SELECT asset, epoch_ms(t) AS t, v FROM points WHERE metric = '${metric}' ORDER BY asset, t`,
  )
  return found.map(({ asset, t, v }) => ({ asset, t: Number(t), v }))
}

/** Each arrival that is drawn is a point; where there is room for all, each that is known is drawn. */
export function expectDots(
  picture: Drawn,
  { known, later }: { readonly known: readonly Raw[]; readonly later: readonly Raw[] },
  assets: readonly string[],
): void {
  const held = new Set([...known, ...later].map(({ asset, t, v }) => `${asset} ${t} ${v}`))
  expect(picture.dots.filter(({ asset, t, v }) => !held.has(`${asset} ${t} ${v}`))).toEqual([])
  const wanted = known.filter(
    ({ asset, t, v }) => v !== null && assets.includes(asset) && t >= picture.x[0] && t < picture.x[1],
  )
  if ((picture.x[1] - picture.x[0]) / picture.columns < 864e5)
    expect(picture.dots.filter(({ late }) => !late)).toHaveLength(wanted.length)
}
