import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import type { Interval } from '../../src/base/time.ts'
import { begin, later } from '../helpers/calendar.ts'
import type { StoredPoint } from '../helpers/lakes/points-file.ts'
import { withJoins } from '../helpers/joins.ts'

const plain = 'indicators/sopr_adjusted_pit'
const nested = 'indicators/cost_basis_distribution_quantiles_pit'
const iso = (us: number): string => new Date(us / 1000).toISOString()

/** What is stored of one finer interval: a number, a null, a JSON text, or nothing at all. */
type Cell = { readonly v: number } | { readonly v: null } | { readonly o: string } | null

function pointsOf(metric: string, interval: Interval, first: number, cells: readonly Cell[]): StoredPoint[] {
  return cells.flatMap((cell, n) => {
    const t = later(first, interval, n)
    if (cell === null) return []
    const known = later(t, interval) + (600 + ((n * 7919) % 5000)) * 1_000_000
    return [
      {
        metric,
        asset: 'BTC',
        interval,
        t: iso(t),
        available_at: iso(known),
        observed_at: '2030-01-01T00:00:00Z',
        ...cell,
      },
    ]
  })
}

/** How many finer intervals lie in a coarse one. */
function countOf(start: number, end: number, interval: Interval): number {
  let count = 0
  while (later(start, interval, count) < end) count++
  return count
}

interface Options {
  readonly pointer?: string | undefined
  readonly skipNulls?: boolean | undefined
  readonly minParts?: number | undefined
  /** Bounds of the coarse `t`, half-open. */
  readonly since?: string | undefined
  readonly until?: string | undefined
}

/** The part that a stored value is: a number, null where it is null, undefined where the value has no number there. */
function partOf(point: StoredPoint, pointer: string | undefined): number | null | undefined {
  if ((point.v ?? null) === null && (point.o ?? null) === null) return null
  if (pointer === undefined) return point.v ?? undefined
  let at: unknown = point.o === undefined || point.o === null ? undefined : JSON.parse(point.o)
  for (const key of pointer.split('/').slice(1))
    at = typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined
  return typeof at === 'number' || at === null ? at : undefined
}

/** By definition: every coarse interval that holds a stored point, with the points that are parts of it. */
function twin(points: readonly StoredPoint[], to: Interval, options: Options) {
  const { pointer, skipNulls = false, minParts, since = '0', until = '9' } = options
  const groups = Map.groupBy(points, ({ t }) => begin(Date.parse(t) * 1000, to))
  const within = [...groups].filter(([start]) => iso(start) >= since && iso(start) < until)
  return within.map(([start, own]) => {
    const parts = own.map((point) => partOf(point, pointer)).filter((part) => part !== undefined)
    const numbers = parts.filter((part) => part !== null)
    const wanted = countOf(start, later(start, to), points[0]?.interval as Interval)
    const voided = !skipNulls && numbers.length < parts.length
    const enough = minParts === undefined ? parts.length >= wanted : numbers.length >= minParts
    const counted = skipNulls ? numbers.length : parts.length
    return {
      t: iso(start).replace('.000Z', '.000000Z'),
      available_at: own
        .map((point) => point.available_at)
        .reduce((a, b) => (a > b ? a : b))
        .replace('Z', '000Z'),
      parts: BigInt(counted),
      complete: parts.length === wanted,
      v: voided || !enough || numbers.length === 0 ? null : numbers.reduce((a, b) => a + b),
    }
  })
}

async function asked(
  engine: Engine,
  name: string,
  from: Interval,
  to: Interval,
  options: Options,
  spelt: 'option' | 'name',
) {
  const { pointer, skipNulls, minParts, since, until } = options
  const given = [
    ...(pointer === undefined || spelt === 'name' ? [] : [`component := '${pointer}'`]),
    ...(skipNulls === undefined ? [] : [`skip_nulls := ${skipNulls}`]),
    ...(minParts === undefined ? [] : [`min_parts := ${minParts}`]),
    ...(since === undefined ? [] : [`since := '${since}'`]),
    ...(until === undefined ? [] : [`until := TIMESTAMPTZ '${until}'`]),
  ]
  const metric = pointer !== undefined && spelt === 'name' ? `${name}#${pointer}` : name
  return engine.rows(
    `SELECT t, available_at, parts, complete, v FROM resample('${[metric, from, to, 'sum'].join("', '")}'${given.map((one) => `, ${one}`).join('')}) ORDER BY t`,
  )
}

/** Of two orders in which many of them are added one gives another sum. */
const number = fc.double({ min: -1e6, max: 1e6, noNaN: true })
const object = fc.constantFrom('{"a":{"b":2.5},"c":null}', '{"a":{"b":null}}', '{"a":7,"c":3}', '{"c":"text"}', '{}')
const cell: fc.Arbitrary<Cell> = fc.oneof(
  { weight: 12, arbitrary: number.map((v) => ({ v })) },
  { weight: 1, arbitrary: fc.constant({ v: null }) },
  { weight: 1, arbitrary: fc.constant(null) },
)
const nestedCell: fc.Arbitrary<Cell> = fc.oneof(
  { weight: 12, arbitrary: number.map((v) => ({ o: `{"a":{"b":${v}},"c":${v}}` })) },
  { weight: 2, arbitrary: object.map((o) => ({ o })) },
  { weight: 1, arbitrary: number.map((v) => ({ v })) },
  { weight: 1, arbitrary: fc.constant({ v: null }) },
  { weight: 1, arbitrary: fc.constant(null) },
)

test('resample is its brute-force twin: parts, nulls, components, fewer parts', async () => {
  const first = Date.UTC(2024, 1, 1) * 1000
  const cells = fc.tuple(
    fc.array(cell, { minLength: 24 * 9, maxLength: 24 * 9 }),
    fc.array(nestedCell, { minLength: 70, maxLength: 70 }),
  )
  for (const [hourly, daily] of fc.sample(cells, { seed: 18, numRuns: 2 })) {
    const hours = pointsOf(plain, '1h', first, hourly)
    const days = pointsOf(nested, '24h', first, daily)
    await withJoins([...hours, ...days], async (engine) => {
      for (const skipNulls of [undefined, false, true])
        for (const minParts of [undefined, 1, 4, 20, 24, 40]) {
          for (const to of ['24h', '1w'] as const) {
            const rows = await asked(engine, plain, '1h', to, { skipNulls, minParts }, 'option')
            expect(rows, `${to} ${skipNulls} ${minParts}`).toEqual(twin(hours, to, { skipNulls, minParts }))
          }
          // A value inside of another is found before parts are counted: half of the numbers do.
          for (const pointer of minParts === 1 || minParts === 20 || minParts === 24
            ? []
            : [undefined, '/a/b', '/c', '/a', '/nonsense'])
            for (const to of ['1w', '1month', '3month'] as const) {
              const options = { pointer, skipNulls, minParts }
              const spelt = minParts === 4 ? 'name' : 'option'
              const rows = await asked(engine, nested, '24h', to, options, spelt)
              expect(rows, `${to} ${JSON.stringify(options)}`).toEqual(twin(days, to, options))
            }
        }
    })
  }
})

test('since and until bound the coarse points, wherever in them they lie', async () => {
  const first = Date.UTC(2024, 0, 20) * 1000
  const [cells = []] = fc.sample(fc.array(cell, { minLength: 90, maxLength: 90 }), { seed: 7, numRuns: 1 })
  const days = pointsOf(plain, '24h', first, cells)
  const bounds = ['2024-01-29T00:00:00.000Z', '2024-02-01T00:00:00.000Z', '2024-02-14T12:00:00.000Z', undefined]
  await withJoins(days, async (engine) => {
    for (const since of bounds)
      for (const until of [...bounds, '2024-04-01T00:00:00.000Z', '2024-04-01T00:00:00.001Z'])
        for (const to of ['1w', '1month', '3month'] as const) {
          const options = { since, until, minParts: 1 }
          const rows = await asked(engine, plain, '24h', to, options, 'option')
          expect(rows, `${to} ${since} ${until}`).toEqual(twin(days, to, options))
        }
  })
})

test('a pointer that leads nowhere is never complete; mistakes are errors', async () => {
  const first = Date.UTC(2024, 1, 5) * 1000
  const cells = Array.from({ length: 7 }, (_, n) => ({ o: `{"a":${n}}` }))
  await withJoins(pointsOf(nested, '24h', first, cells), async (engine) => {
    const row = { available_at: expect.anything(), t: '2024-02-05T00:00:00.000000Z' }
    for (const pointer of [undefined, '/nonsense', '/a/b'])
      expect(await asked(engine, nested, '24h', '1w', { pointer }, 'option')).toEqual([
        { ...row, parts: 0n, complete: false, v: null },
      ])
    expect(await asked(engine, nested, '24h', '1w', { pointer: '/a' }, 'name')).toEqual([
      { ...row, parts: 7n, complete: true, v: 21 },
    ])
    await expect(engine.rows(`FROM resample('${nested}#a', '24h', '1w')`)).rejects.toThrow(/JSON pointer/)
    await expect(engine.rows(`FROM resample('${nested}', '24h', '1w', component := 'a')`)).rejects.toThrow(
      /JSON pointer/,
    )
    await expect(engine.rows(`FROM resample('${nested}', '24h', '1w', min_parts := 0)`)).rejects.toThrow(/not positive/)
  })
})

test('bars are the first, largest, smallest and last part of each coarse interval, as resample gives them', async () => {
  const first = Date.UTC(2024, 1, 1) * 1000
  const cells = fc.array(cell, { minLength: 24 * 30, maxLength: 24 * 30 })
  for (const hourly of fc.sample(cells, { seed: 19, numRuns: 3 })) {
    await withJoins(pointsOf(plain, '1h', first, hourly), async (engine) => {
      for (const to of ['24h', '1w'] as const)
        for (const options of [
          '',
          ', skip_nulls := true, min_parts := 4',
          `, since := '2024-02-05', until := '2024-02-20'`,
        ]) {
          const columns = 'metric, asset, interval, currency, exchange, network, t, available_at, parts, complete'
          const values = { open: 'first', high: 'max', low: 'min', close: 'last' }
          const resampled = Object.entries(values).map(
            ([name, agg]) => `(FROM resample('${plain}', '1h', '${to}', '${agg}'${options})) AS ${name}`,
          )
          const joined = resampled.map((relation, n) =>
            n === 0 ? relation : `JOIN ${relation} ON ${relation.split(' ').at(-1)}.t = open.t`,
          )
          const owed = await engine.rows(
            `SELECT ${columns.replaceAll(/\w+/g, 'open."$&"')}, open.v AS open, high.v AS high, low.v AS low, close.v AS close
             FROM ${joined.join(' ')} ORDER BY t`,
          )
          expect(owed.length).toBeGreaterThan(1)
          expect(await engine.rows(`FROM bars('${plain}', '1h', '${to}'${options}) ORDER BY t`)).toEqual(owed)
        }
    })
  }
})
