import { readFileSync } from 'node:fs'
import { expect, test as base } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import type { StoredPoint } from '../helpers/lakes/points-file.ts'
import { withJoins } from '../helpers/joins.ts'

const plain = 'indicators/sopr_adjusted_pit'
const nested = 'indicators/cost_basis_distribution_quantiles_pit'
const observed_at = '2024-04-01T00:00:00Z'

function daily(metric: string, day: number, value: Partial<StoredPoint>): StoredPoint {
  const at = (n: number) => new Date(Date.UTC(2024, 1, 20 + n)).toISOString()
  return {
    metric,
    asset: 'BTC',
    interval: '24h',
    t: at(day),
    available_at: at(day + 1).replace('T00:00', 'T00:10'),
    observed_at,
    ...value,
  }
}

const points: StoredPoint[] = Array.from({ length: 20 }, (_, n) => [
  daily(plain, n, { v: n }),
  daily('supply/current_pit', n, { v: 10, currency: 'native' }),
  daily('supply/current_pit', n, { v: 10 * n, currency: 'usd' }),
]).flat()

/** A test that may have the lake open as `engine`. */
const test = base.extend<{ engine: Engine }>({
  // oxlint-disable-next-line no-empty-pattern -- what a fixture needs of others is read from here
  engine: async ({}, use) => await withJoins(points, use),
})

test('every example of the guide runs and finds something', async ({ engine }) => {
  const guide = readFileSync(new URL('../../docs/reference/joins.md', import.meta.url), 'utf8')
  // The examples of vintages are about a series that a reader imports, which this lake has not.
  const examples = [...guide.matchAll(/```sql\n([\s\S]*?)```/g)]
    .map(([, example = '']) => example)
    .filter((example) => !example.includes("'macro/"))
  expect(examples.length).toBeGreaterThan(5)
  for (const example of examples) {
    const rows = await engine.rows(example)
    expect(rows.length, example).toBeGreaterThan(0)
    expect(Object.values(rows.at(-1) ?? {}), example).not.toContain(null)
  }
})

test('an unknown metric or option is an error, even without a decision', async ({ engine }) => {
  await engine.run(`CREATE TEMP TABLE none (asset VARCHAR, ts TIMESTAMPTZ)`)
  const wrong: Readonly<Record<string, RegExp>> = {
    [`pit_join('none', 'nix', '24h')`]: /unknown metric nix/,
    [`pit_long('none', ['${plain}', 'nix'], '24h')`]: /unknown metric nix/,
    [`pit_join('none', '${plain}', '1w')`]: /has no interval 1w, but 10m,1h,24h/,
    [`pit_join('none', '${plain}', '3h')`]: /has no interval 3h, but 10m,1h,24h/,
    [`pit_join('none', '${plain}', NULL)`]: /has no interval NULL/,
    [`pit_join('none', 'supply/current_pit', '24h', currency := 'eur')`]: /has no currency eur/,
    [`pit_join('none', '${plain}', '24h', component := 'a')`]: /JSON pointer/,
    [`resample('${plain}', '24h', '1h', 'sum')`]: /has no interval|cannot resample/,
    [`pit_join('missing', '${plain}', '24h')`]: /missing/,
    [`pit_join('one', '${plain}', '24h', latency := 15)`]: /latency has no unit: 15/,
    [`pit_join('one', '${plain}', '24h', latency := '15')`]: /latency has no unit: 15/,
    [`pit_join('one', '${plain}', '24h', max_age := ' 1e3')`]: /max_age has no unit: {2}1e3/,
    [`pit_long('one', ['${plain}'], '24h', max_age := 3)`]: /max_age has no unit: 3/,
    [`pit_window('one', '${plain}', '24h', 2, latency := '0.5')`]: /latency has no unit: 0.5/,
    [`calendar('2024-01-01', '2024-01-02', 15)`]: /step has no unit: 15/,
    [`calendar('2024-01-01', '2024-01-02', '900')`]: /step has no unit: 900/,
  }
  await engine.run(`CREATE TEMP TABLE one AS SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-03-01 00:00:00Z' AS ts`)
  for (const [macro, message] of Object.entries(wrong))
    await expect(engine.rows(`FROM ${macro}`), macro).rejects.toThrow(message)
  const told = async (options: string) => engine.rows(`FROM pit_join('one', '${plain}', '24h'${options})`)
  for (const nothing of ['0', "'0'", "'0m'", 'INTERVAL 0 DAY'])
    expect(await told(`, latency := ${nothing}`), nothing).toEqual(await told(''))
})

test('a clash of names is an error for every name that is added', async ({ engine }) => {
  const added: Readonly<Record<string, readonly string[]>> = {
    [`pit_join('d', '${plain}', '24h')`]: ['t', 'available_at', 'v', 'o', 'age'],
    [`pit_long('d', ['${plain}'], '24h')`]: ['metric', 'T'],
    [`pit_window('d', '${plain}', '24h', 2)`]: ['v', 'nth'],
  }
  for (const [macro, names] of Object.entries(added)) {
    for (const name of names) {
      const asked = engine.rows(
        `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMP '2024-03-01' AS ts, 1 AS ${name}) FROM ${macro}`,
      )
      await expect(asked, `${macro} ${name}`).rejects.toThrow(/mbiguous/)
    }
  }
})

test('columns of the decisions come first, whatever their names', async ({ engine }) => {
  await engine.run(
    `CREATE TEMP VIEW w AS SELECT 7 AS weight, 'BTC' AS asset, '2024-03-01T05:30:00+05:30' AS ts, 'x' AS points`,
  )
  const [row] = await engine.rows(`FROM pit_join('w', '${plain}', '24h')`)
  expect(Object.keys(row ?? {})).toEqual(['weight', 'asset', 'ts', 'points', 't', 'available_at', 'v', 'o', 'age'])
  expect(row?.['v']).toBe(8)
  const [both] = await engine.rows(
    `SELECT count(*) AS n, count(v) AS known FROM pit_long('w', ['price_usd', '${plain}'], '24h')`,
  )
  expect(both).toEqual({ n: 2n, known: 2n })
})

test.each(['joins', 'joins [1]', 'joins=1'])(
  'prices alone, in a folder %s: the same from both joins',
  async (folder) => {
    await withJoins(
      points,
      async (engine) => {
        await engine.run(`CREATE TEMP VIEW w AS SELECT 'BTC' AS asset, TIMESTAMP '2024-03-01' AS ts`)
        for (const names of ["['price_usd']", "['price_usd', 'price_usd']"]) {
          const alone = await engine.rows(`SELECT t, v FROM pit_long('w', ${names}, '24h')`)
          expect(alone).toEqual(await engine.rows(`SELECT t, v FROM pit_join('w', 'price_usd', '24h')`))
          expect(alone).toEqual([{ t: expect.any(String), v: 8 }])
        }
      },
      { folder },
    )
  },
)

test('the decisions may have any name, with quotes or without, and may stand in a list', async ({ engine }) => {
  for (const name of ['grid', 'fact', 'facts', 'one', 'metric', 'latency'])
    for (const given of [name, `'${name}'`, `['${name}', '${name}']`])
      for (const macro of [`pit_join(${given}, '${plain}', '24h')`, `pit_long(${given}, ['${plain}'], '24h')`]) {
        const decided = `WITH ${name} AS (SELECT 'BTC' AS asset, TIMESTAMP '2024-03-01' AS ts)`
        const rows = await engine.rows(`${decided} SELECT v FROM ${macro}`)
        expect(rows, macro).toEqual(given.startsWith('[') ? [{ v: 8 }, { v: 8 }] : [{ v: 8 }])
      }
})

test('components: numbers, parts, nulls, absent ones', async () => {
  const told = [
    daily(nested, 0, { o: '{"a/b":{"c~d":[1.5,{"x":-0.0}]},"text":"y"}' }),
    daily(nested, 1, { o: '{"text":null}' }),
  ]
  await withJoins(told, async (engine) => {
    const at = async (name: string, ts: string, options = ''): Promise<unknown[]> => {
      const rows = await engine.rows(
        `WITH d AS (SELECT 'BTC' AS asset, '${ts}' AS ts) SELECT v, o FROM pit_join('d', '${name}', '24h'${options})`,
      )
      return Object.values(rows[0] ?? {})
    }
    expect(await at(`${nested}#/a~1b/c~0d/0`, '2024-02-22')).toEqual([1.5, null])
    expect(await at(nested, '2024-02-22', `, component := '/a~1b/c~0d/1'`)).toEqual([null, '{"x":-0.0}'])
    expect(await at(`${nested}#/a~1b/c~0d/0`, '2024-02-23')).toEqual([null, null])
    expect(await at(`${nested}#/a~1b/c~0d/0`, '2024-02-23', ', skip_nulls := true')).toEqual([1.5, null])
    const long = await engine.rows(
      `WITH d AS (SELECT 'BTC' AS asset, '2024-02-22' AS ts) SELECT metric, v FROM pit_long('d', ['${nested}#/a~1b/c~0d/0', '${nested}#/text'], '24h') ORDER BY 1`,
    )
    expect(long.map((row) => row['v'])).toEqual([1.5, null])
  })
})

test('short options give the answer of full ones, under every clock of a session', async () => {
  // Known late, by a rule a day after its interval, and held by the lake in two portions.
  const told = Array.from({ length: 20 }, (_, n) => [
    daily(plain, n, {
      v: n,
      available_at: new Date(Date.UTC(2024, 1, 24 + n)).toISOString(),
      available_rule_at: new Date(Date.UTC(2024, 1, 22 + n)).toISOString(),
      observed_at: n < 10 ? observed_at : '2024-05-01T00:00:00Z',
    }),
    daily('supply/current_pit', n, { v: n, currency: 'native' }),
    daily('supply/current_pit', n, { v: -n, currency: 'usd' }),
  ]).flat()
  await withJoins(told, async (engine) => {
    await engine.run(
      `CREATE TEMP TABLE d AS SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-02-20 06:00:00Z' + to_days(n) AS ts FROM range(40) AS r (n)`,
    )
    const asked = async (metric: string, option: string) =>
      engine.rows(`FROM pit_join('d', '${metric}', '24h'${option}) ORDER BY ts`)
    const seen = new Set<string>()
    const clocks = {
      as_of: `'2024-03-01'`,
      observed_as_of: `'2024-04-15'`,
      backfill: `'rule'`,
      proof_hidden: '[0, 1709300000000000]',
      none: 'NULL',
    }
    for (const [clock, value] of Object.entries(clocks)) {
      await engine.run(`SET VARIABLE ${clock} = ${value}`)
      const short = await asked(plain, '')
      // An option that says what goes without saying is answered in full.
      expect(short, clock).toEqual(await asked(plain, ', skip_nulls := NULL'))
      seen.add(JSON.stringify(short))
      expect(await asked('supply/current_pit', ''), clock).toEqual(
        await asked('supply/current_pit', `, currency := 'native'`),
      )
      await engine.run(`RESET VARIABLE ${clock}`)
    }
    expect(seen.size).toBe(Object.keys(clocks).length)
  })
})
