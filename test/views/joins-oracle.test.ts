import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import type { Interval } from '../../src/base/time.ts'
import {
  commits,
  decisionsFor,
  iso,
  knowable,
  type OraclePoint,
  oraclePoints,
  owed,
  type Question,
  stories,
  type Story,
} from '../helpers/pit-oracle.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { withJoins } from '../helpers/joins.ts'
import { micros } from '../helpers/instants.ts'

const metric = 'addresses/min_1_count_pit'
const other = 'indicators/sopr_adjusted_pit'

async function withStories(told: readonly Story[], work: (engine: Engine) => Promise<void>): Promise<void> {
  const points = told.flatMap(({ early, late }) => [
    ...early.map((row) => ({ ...row, observed_at: commits[0] })),
    ...late.map((row) => ({ ...row, observed_at: commits[1] })),
  ])
  await withJoins(points, work)
}

async function decide(engine: Engine, decisions: readonly [string | null, number | null][]): Promise<void> {
  const text = (values: readonly (string | number | null)[]) => quote(values.map((value) => value ?? '').join(','))
  const [assets, instants] = [decisions.map(([asset]) => asset), decisions.map(([, ts]) => ts)].map(text)
  await engine.run(`CREATE OR REPLACE TEMP TABLE d AS
    SELECT CAST(id AS INTEGER) AS id, nullif(asset, '') AS asset, make_timestamptz(CAST(nullif(us, '') AS BIGINT)) AS ts
    FROM (SELECT unnest(string_split(${assets}, ',')) AS asset, unnest(string_split(${instants}, ',')) AS us, unnest(range(${decisions.length})) AS id)`)
}

/** What a row says, without the caller's columns. */
function toldBy(row: Row | undefined): string {
  return JSON.stringify([row?.['t'] ?? null, row?.['available_at'] ?? null, row?.['v'] ?? null])
}

function expected(point: OraclePoint | undefined): string {
  return JSON.stringify(point ? [iso(point.t), iso(point.available), point.v] : [null, null, null])
}

/** The rows that a window owes a decision: one without a point where nothing fresh enough was known. */
function windowOwed(
  points: readonly OraclePoint[],
  asset: string | null,
  ts: number | null,
  n: number,
  question: Question,
): string[] {
  const known = knowable(points, asset, ts, question).slice(0, n)
  const fresh = known.filter((point) => (ts ?? 0) - point.end <= (question.maxAge ?? Infinity))
  return fresh.length === 0 ? [expected(undefined)] : fresh.map(expected)
}

async function ask(engine: Engine, question: Question): Promise<string> {
  const instant = (at: number | undefined) => (at === undefined ? 'NULL' : `'${iso(at)}'`)
  await engine.run(
    `SET VARIABLE as_of = ${instant(question.asOf)}; SET VARIABLE observed_as_of = ${instant(question.observedAsOf)}`,
  )
  const span = (us: number | undefined) => (us === undefined ? 'NULL' : `to_microseconds(${us})`)
  return `max_age := ${span(question.maxAge)}, latency := ${span(question.latency)}, skip_nulls := ${question.skipNulls ?? false}`
}

const questions: fc.Arbitrary<Question> = fc.record(
  {
    asOf: fc.integer({ min: 0, max: 60 }).map((days) => Date.UTC(2024, 1, 10 + days) * 1000),
    observedAsOf: fc.constantFrom(
      micros(commits[0]) - 1,
      micros(commits[0]),
      micros(commits[1]) - 1,
      micros(commits[1]),
    ),
    latency: fc.constantFrom(1, 600_000_000, 86_400_000_000),
    maxAge: fc.constantFrom(0, 3_600_000_000, 3 * 86_400_000_000),
    skipNulls: fc.boolean(),
  },
  { requiredKeys: [] },
)

const sizes = [1, 64, 65, 400]

for (const interval of ['10m', '1h', '24h', '1w', '1month', '3month'] as const) {
  test(`TIME 13: pit_join answers as the definition does, ${interval}, any probe size, threads and insertion order`, async () => {
    await fc.assert(
      fc.asyncProperty(
        stories(metric, interval),
        fc.array(questions, { minLength: 2, maxLength: 2 }),
        fc.nat(),
        async (story, asked, seed) => {
          const points = oraclePoints(story)
          await withStories([story], async (engine) => {
            for (const [index, question] of [{}, ...asked].entries()) {
              const decisions = decisionsFor(points, sizes[(index + seed) % sizes.length] ?? 1, seed + index)
              await decide(engine, decisions)
              await engine.run(`SET threads = ${[1, 2, 4][(index + seed) % 3]}`)
              const options = await ask(engine, question)
              const rows = await engine.rows(
                `SELECT * FROM pit_join('d', '${metric}', '${interval}', ${options}) ORDER BY id`,
              )
              expect(rows.map(toldBy)).toEqual(
                decisions.map(([asset, ts]) => expected(owed(points, asset, ts, question))),
              )
            }
          })
        },
      ),
      { numRuns: 1, endOnFailure: true },
    )
  })
}

test('pit_long answers as the definition does for every metric', async () => {
  await fc.assert(
    fc.asyncProperty(
      stories(metric, '24h'),
      stories(other, '24h'),
      questions,
      fc.nat(),
      async (one, two, question, seed) => {
        const all = new Map([
          [metric, oraclePoints(one)],
          [other, oraclePoints(two)],
        ])
        await withStories([one, two], async (engine) => {
          const decisions = decisionsFor([...all.values()].flat(), 200, seed)
          await decide(engine, decisions)
          for (const asked of [{}, question]) {
            const options = await ask(engine, asked)
            const rows = await engine.rows(
              `SELECT * FROM pit_long('d', ['${other}', '${metric}'], '24h', ${options}) ORDER BY id, metric DESC`,
            )
            const owing = decisions.flatMap(([asset, ts]) =>
              [other, metric].map((name) => expected(owed(all.get(name) ?? [], asset, ts, asked))),
            )
            expect(rows.map(toldBy)).toEqual(owing)
          }
        })
      },
    ),
    { numRuns: 2, endOnFailure: true },
  )
})

test('pit_window gives the newest n that the definition knows', async () => {
  await fc.assert(
    fc.asyncProperty(
      stories(metric, '24h'),
      questions,
      fc.integer({ min: 1, max: 20 }),
      fc.nat(),
      async (story, question, n, seed) => {
        const points = oraclePoints(story)
        await withStories([story], async (engine) => {
          const decisions = decisionsFor(points, 100, seed)
          await decide(engine, decisions)
          for (const asked of [{}, question]) {
            const options = await ask(engine, asked)
            const rows = await engine.rows(
              `SELECT * FROM pit_window('d', '${metric}', '24h', ${n}, ${options}) ORDER BY id, nth`,
            )
            const owing = decisions.flatMap(([asset, ts]) => windowOwed(points, asset, ts, n, asked))
            expect(rows.map(toldBy)).toEqual(owing)
          }
        })
      },
    ),
    { numRuns: 2, endOnFailure: true },
  )
})

test('pit_window with a span gives the points that ended less than it before ts', async () => {
  await fc.assert(
    fc.asyncProperty(
      stories(metric, '24h'),
      questions,
      // Whole days meet points that ended exactly so long ago.
      fc.oneof(
        fc.integer({ min: 1, max: 20 * 24 }),
        fc.integer({ min: 1, max: 20 }).map((days) => days * 24),
      ),
      fc.nat(),
      async (story, question, hours, seed) => {
        const points = oraclePoints(story)
        await withStories([story], async (engine) => {
          const decisions = decisionsFor(points, 5000, seed)
          await decide(engine, decisions)
          for (const asked of [{}, question]) {
            const options = await ask(engine, asked)
            const rows = await engine.rows(
              `SELECT * FROM pit_window('d', '${metric}', '24h', '${hours} hours', ${options}) ORDER BY id, nth`,
            )
            // Ages are whole microseconds: less than the span is at most a microsecond less.
            const maxAge = Math.min(asked.maxAge ?? Infinity, hours * 3_600_000_000 - 1)
            const owing = decisions.flatMap(([asset, ts]) => windowOwed(points, asset, ts, 1000, { ...asked, maxAge }))
            expect(rows.map(toldBy)).toEqual(owing)
          }
        })
      },
    ),
    { numRuns: 4, endOnFailure: true },
  )
})

test.each([
  ["'0 days'", 'n is not positive'],
  ["'-3 days'", 'n is negative'],
  ["'half'", 'Could not convert'],
  ['NULL', 'n is not positive'],
  ['0', 'n is not positive'],
])('pit_window refuses %s', async (n, words) => {
  await withStories([], async (engine) => {
    await decide(engine, [])
    await expect(engine.rows(`FROM pit_window('d', '${metric}', '24h', ${n})`)).rejects.toThrow(words)
  })
})

test('TIME 56: 10,000 probes: the same rows alone and in company get the same answers', async () => {
  const [story] = fc.sample(stories(metric, '24h'), { numRuns: 1, seed: 5 })
  if (!story) throw new Error('no story')
  const points = oraclePoints(story)
  await withStories([story], async (engine) => {
    const decisions = decisionsFor(points, 10_000, 3)
    await decide(engine, decisions)
    for (const threads of [1, 4]) {
      await engine.run(`SET threads = ${threads}`)
      const all = await engine.rows(`SELECT * FROM pit_join('d', '${metric}', '24h') ORDER BY id`)
      expect(all.map(toldBy)).toEqual(decisions.map(([asset, ts]) => expected(owed(points, asset, ts, {}))))
      const few = await engine.rows(
        `WITH few AS (FROM d WHERE id < 60) SELECT * FROM pit_join('few', '${metric}', '24h') ORDER BY id`,
      )
      expect(few).toEqual(all.slice(0, 60))
    }
  })
})

/** Paths that take no dimension, and thereby one answer each. */
const bare = [...catalogue.endpoints.values()].filter(
  ({ intervals, currencies, exchanges, networks }) =>
    intervals.includes('24h') && currencies.length + exchanges.length + networks.length === 0,
)

test('pit_long answers for more metrics than a number has bits, each by its points', async () => {
  const names = [
    ...bare.map(({ path }) => path),
    ...Array.from({ length: 130 - bare.length }, (_, n) => `${bare[0]?.path}#/part${n}`),
  ]
  expect(names.length).toBeGreaterThan(2 * 60)
  // In each of the fields, at its first and its last place, and alone in the last one.
  const told = new Map(
    [0, 1, 31, Math.min(bare.length, 60) - 1].map((place, n) => {
      const metric = names[place] ?? ''
      const [story] = fc.sample(stories(metric, '24h'), { numRuns: 1, seed: 70 + n }) as [Story]
      return [metric, story] as const
    }),
  )
  // The last field once with few places and once with all.
  for (const order of [names, names.toReversed().slice(-120)]) {
    const points = new Map([...told].map(([path, story]) => [path, oraclePoints(story)]))
    // A number has no parts: with a pointer the same points say nothing.
    const pointsOf = (name: string): OraclePoint[] => {
      const [path = '', pointer] = name.split('#')
      return (points.get(path) ?? []).map((one) => (pointer === undefined ? one : { ...one, v: null }))
    }
    await withStories([...told.values()], async (engine) => {
      const decisions = decisionsFor([...points.values()].flat(), 66, 9)
      await decide(engine, decisions)
      const list = order.map((name) => quote(name)).join(', ')
      const rows = await engine.rows<Row & { id: number; metric: string }>(
        `SELECT * FROM pit_long('d', [${list}], '24h')`,
      )
      const seen = rows.map((row) => `${row.id} ${row.metric} ${toldBy(row)}`)
      const owing = decisions.flatMap(([asset, ts], id) =>
        order.map((name) => `${id} ${name} ${expected(owed(pointsOf(name), asset, ts, {}))}`),
      )
      expect(owing.filter((line) => !line.endsWith('[null,null,null]')).length).toBeGreaterThan(100)
      expect(seen.toSorted()).toEqual(owing.toSorted())
    })
  }
})

test('thousands of points that are not known yet stand between a decision and its answer', async () => {
  const first = Date.UTC(2024, 2, 1) * 1000
  const ten = 600_000_000
  // Known at once: the first fifty and a single one far ahead, for the sake of the smallest lag. The rest comes in
  // June.
  const row = (n: number) => ({
    metric,
    asset: 'A',
    interval: '10m' as const,
    network: 'eth',
    t: iso(first + n * ten),
    available_at: n < 50 || n === 5999 ? iso(first + (n + 1) * ten + 60_000_000) : '2024-06-01T00:00:00Z',
    v: n % 7 === 0 ? null : n,
  })
  const story: Story = { early: Array.from({ length: 6000 }, (_, n) => row(n)), late: [] }
  const points = oraclePoints(story)
  const hours = [1, 8, 9, 10, 200, 700, 990, 999, 1001, 2000, 2208, 2209, 3000]
  const decisions = hours.flatMap((hour): [string, number][] =>
    [-1, 0, 60_000_000].map((by) => ['A', first + hour * 6 * ten + by]),
  )
  await withStories([story], async (engine) => {
    await decide(engine, decisions)
    for (const question of [{}, { skipNulls: true }, { latency: 3_600_000_000 }, { maxAge: 86_400_000_000 }]) {
      const options = await ask(engine, question)
      for (const macro of [`pit_join('d', '${metric}', '10m'`, `pit_long('d', ['${metric}'], '10m'`]) {
        const rows = await engine.rows(`SELECT * FROM ${macro}, ${options}) ORDER BY id`)
        expect(rows.map(toldBy)).toEqual(decisions.map(([asset, ts]) => expected(owed(points, asset, ts, question))))
      }
      for (const n of [1, 5, 70]) {
        const rows = await engine.rows(
          `SELECT * FROM pit_window('d', '${metric}', '10m', ${n}, ${options}) ORDER BY id, nth`,
        )
        expect(rows.map(toldBy)).toEqual(decisions.flatMap(([asset, ts]) => windowOwed(points, asset, ts, n, question)))
      }
    }
  })
})

test('a decision without asset or instant matches no point, for 64 probes and more', async () => {
  const story: Story = { early: [point('A', '2024-02-20')], late: [] }
  await withStories([story], async (engine) => {
    for (const count of [64, 65, 10_000]) {
      await decide(
        engine,
        Array.from({ length: count }, (_, n) => (n % 2 === 0 ? [null, 1.9e15] : ['A', null])),
      )
      for (const macro of [
        `pit_join('d', '${metric}', '24h')`,
        `pit_long('d', ['${metric}'], '24h')`,
        `pit_window('d', '${metric}', '24h', 2)`,
      ]) {
        const rows = await engine.rows(`SELECT count(*) AS n, count(t) AS matched FROM ${macro}`)
        expect(rows).toEqual([{ n: BigInt(count), matched: 0n }])
      }
    }
  })
})

function point(asset: string, day: string): Story['early'][number] {
  const interval: Interval = '24h'
  return { metric, asset, interval, t: `${day}T00:00:00Z`, available_at: '2024-03-01T00:00:00Z', v: 1, network: 'eth' }
}
