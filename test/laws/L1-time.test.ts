import { expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { type Line, type TimedLake, withTimedLake } from '../helpers/lakes/timed-lake.ts'
import { endOf, historyAfter, type Spell, startAfter, type Told } from '../helpers/time-twin.ts'
import { withViews } from '../helpers/views.ts'

/** The worked cases of time the whole way: a catalogue and a configuration, a provider, a fetch, the joins. */
const at = (text: string): number => Date.parse(`${text.length < 11 ? `2024-${text}T00:00` : text}Z`) / 1000
const sopr = 'indicators/sopr_adjusted_pit'
const blocks = 'blockchain/block_count_pit'
const dominance = 'market/btc_dominance_pit'
const first = at('03-01')
const second = at('03-02')

/** The two points of the fixture, each with how the case differs. */
const two = (one: Partial<Told> = {}, other: Partial<Told> = {}): Told[] => [
  { t: first, v: 100, shown: at('2024-03-02T00:05'), ...one },
  { t: second, v: 200, shown: at('2024-03-03T00:05'), ...other },
]
const daily = (asset: string, points: readonly Told[]): Line => ({ path: sopr, asset, interval: '24h', points })
const plain = (interval: Spell, path: string, starts: readonly string[]): Line => ({
  path,
  asset: 'BTC',
  interval,
  points: starts.map((text, i) => ({ t: at(text), v: i + 1, shown: endOf(at(text), interval) })),
})

const lines: readonly Line[] = [
  daily('BTC', two()),
  daily('TOLD', two({ computed: at('2024-03-02T00:20') }, { computed: at('2024-03-03T00:05') })),
  daily('EARLY', two({ computed: at('2024-03-01T23:00') }, { computed: at('2024-03-03T00:05') })),
  daily('LATE', two({ shown: at('2024-03-04T23:59') })),
  daily('NONE', two({ shown: at('2024-03-04T23:59') }, { shown: at('2024-03-04T23:59') })),
  daily('BOTH', two({ shown: at('2024-03-04T23:59') }, { shown: at('2024-03-04T23:59') })),
  plain('1month', blocks, ['02-01']),
  plain('1w', blocks, ['02-26', '2024-12-30T00:00']),
  plain('10m', blocks, ['2024-03-01T11:40', '2024-03-01T11:50', '2024-03-01T12:00']),
  plain('24h', dominance, ['02-29', '03-01']),
]
const assets = [...new Set(lines.filter(({ path }) => path === sopr).map(({ asset }) => asset))]
const basics = '  metadata: false\n  concurrency: 1\n  requests_per_minute: 1000000\n'
const yaml = `metrics:
${basics}  availability:
    ${sopr}: { lag: 10m }
    ${blocks}: { 1month: { lag: 0s }, 1w: { lag: 0s } }
select:
  - { assets: [${assets.join(', ')}], paths: [${sopr}], since: 2024-03-01 }
  - { assets: [BTC], paths: [${blocks}], intervals: [1month], since: 2024-02-01 }
  - { assets: [BTC], paths: [${blocks}], intervals: [1w], since: 2024-02-26 }
  - { assets: [BTC], paths: [${blocks}], intervals: [10m], since: 2024-03-01 }
  - { assets: [BTC], paths: [${dominance}], since: 2024-02-29 }
`

/** What the joins give at these instants: a column of `pit_join`, and the same of the newest of `pit_window`. */
async function known(
  engine: Engine,
  asset: string,
  instants: readonly string[],
  { path = sopr, interval = '24h', column = 'v' } = {},
): Promise<unknown[]> {
  const rows = instants.map((ts, id) => `(${id}, '${asset}', TIMESTAMP '${ts}')`)
  await engine.run(`CREATE OR REPLACE TEMP TABLE d AS SELECT * FROM (VALUES ${rows.join(', ')}) AS d (id, asset, ts)`)
  const answers = async (join: string): Promise<unknown[]> =>
    (await engine.rows(`SELECT ${column} AS x FROM ${join} ORDER BY id`)).map(({ x }) => x)
  const found = await answers(`pit_join('d', '${path}', '${interval}')`)
  expect(await answers(`pit_window('d', '${path}', '${interval}', 1)`)).toEqual(found)
  expect(await answers(`pit_long('d', ['${path}'], '${interval}')`)).toEqual(found)
  return found
}

async function asked(lake: TimedLake, work: (engine: Engine) => Promise<void>): Promise<void> {
  await lake.views()
  await withViews(lake.root, work)
}

test('TIME 1 to TIME 13 and TIME 35 from the catalogue to the joins', async () =>
  withTimedLake(yaml, { lines }, async (lake) => {
    const looks = ['2024-03-03T00:30', '2024-03-05T00:00', '2025-01-08T00:00'].map(at)
    for (const look of looks) expect(await lake.fetchCode(look)).toBe(0)
    await asked(lake, async (engine) => {
      // TIME 1, TIME 2, TIME 3: not while the interval lasts, not at midnight, but from the very microsecond on.
      const days = ['2024-03-01 12:00', '2024-03-02 00:00', '2024-03-02 00:09:59.999999', '2024-03-02 00:10:00']
      expect(await known(engine, 'BTC', [...days, '2024-03-02 00:10:00.000001'])).toEqual([null, null, null, 100, 100])
      // TIME 4
      const month = { path: blocks, interval: '1month' }
      expect(await known(engine, 'BTC', ['2024-02-29 23:59:59.999999', '2024-03-01 00:00'], month)).toEqual([null, 1])
      // TIME 5, TIME 6
      const week = { path: blocks, interval: '1w' }
      const ends = ['2024-03-03 23:59:59', '2024-03-04 00:00', '2025-01-05 23:59:59', '2025-01-06 00:00']
      expect(await known(engine, 'BTC', ends, week)).toEqual([null, 1, 1, 2])
      // TIME 7: the catalogue's own rule, twenty minutes.
      const ten = { path: blocks, interval: '10m' }
      const noon = ['2024-03-01 12:09:59', '2024-03-01 12:10', '2024-03-01 12:25', '2024-03-01 12:30']
      expect(await known(engine, 'BTC', noon, ten)).toEqual([null, 1, 2, 3])
      // TIME 8: the catalogue's own, as the description states it.
      const morning = ['2024-03-02 10:14:59', '2024-03-02 10:15:00']
      expect(await known(engine, 'BTC', morning, { path: dominance })).toEqual([1, 2])
      // TIME 9
      expect(await known(engine, 'TOLD', ['2024-03-02 00:15', '2024-03-02 00:20'])).toEqual([null, 100])
      // TIME 10
      expect(await known(engine, 'EARLY', ['2024-03-01 23:59:59', '2024-03-02 00:00'])).toEqual([null, 100])
      expect(await engine.rows('SELECT asset, kind, epoch(t)::BIGINT AS t FROM clock_findings')).toEqual([
        { asset: 'EARLY', kind: 'before_end', t: BigInt(first) },
      ])
      // TIME 11
      expect(await known(engine, 'LATE', ['2024-03-05 01:00'])).toEqual([200])
      // TIME 12
      const read = ['2024-03-03 00:09', '2024-03-04 00:00', '2024-03-06 00:00']
      await engine.run(
        `CREATE TEMP TABLE late AS SELECT 'LATE' AS asset, unnest(${JSON.stringify(read).replaceAll('"', "'")}) AS ts`,
      )
      const series = await engine.rows(
        `SELECT ts, list(v ORDER BY t) FILTER (v IS NOT NULL) AS all FROM pit_window('late', '${sopr}', '24h', 9) GROUP BY ts ORDER BY ts`,
      )
      expect(series.map((row) => row['all'])).toEqual([null, [200], [100, 200]])
      // TIME 13: both came with one commit.
      const [come] = await engine.rows(
        `SELECT count(DISTINCT available_at)::INT AS n, strftime(max(available_at) AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f') AS ts FROM points WHERE asset = 'BOTH'`,
      )
      expect(come?.['n']).toBe(1)
      for (const n of [1, 64, 65])
        expect(new Set(await known(engine, 'BOTH', Array<string>(n).fill(come?.['ts'] as string)))).toEqual(
          new Set([200]),
        )
      // TIME 35
      const none = `SELECT count(*)::INT AS n, bool_and(basis = 'observed' AND available_at = observed_at) AS seen FROM points WHERE asset = 'NONE'`
      expect(await engine.rows(none)).toEqual([{ n: 2, seen: true }])
    })
    const audit = await lake.run(['audit', 'availability', '--paths', sopr], looks[2] ?? 0)
    expect(audit.code, 'TIME 9').toBe(4)
    expect(audit.message).toMatch(/1 availability rule is contradicted by arrivals/)
  }))

test('a point that an informed answer lacked is late, by the earlier clock and to the second', async () => {
  const cases = [
    { asset: 'AT', local: '00:10:00', date: '00:10:00', basis: 'override' },
    { asset: 'DATE-AHEAD', local: '00:10:00', date: '00:40:00', basis: 'override' },
    { asset: 'BEHIND', local: '00:10:01', date: '00:10:01', basis: 'observed' },
    { asset: 'NO-DATE', local: '00:10:01', date: null, basis: 'observed' },
    { asset: 'DATE-AT', local: '00:20:00', date: '00:10:00', basis: 'override' },
    { asset: 'DATE-BEHIND', local: '00:20:00', date: '00:10:01', basis: 'observed' },
    // The day has ended by the local clock, not by the provider's: what it shows of it is not final.
    { asset: 'UNFINISHED', local: '00:20:00', date: '-1 23:50:00', basis: 'override' },
  ]
  const config = (own: readonly string[]): string =>
    `metrics:\n${basics}  availability: { ${sopr}: { lag: 10m } }\nselect: [{ assets: [${own.join(', ')}], paths: [${sopr}], since: 2024-03-01 }]\n`
  const seen = (asset: string): string => (asset === 'UNFINISHED' ? '2024-03-02T12:00' : '2024-03-04T12:00')
  const lines = cases.map(({ asset }) => daily(asset, two({}, { shown: at(seen(asset)) })))
  const on = (time: string): number => at(`2024-03-0${time.startsWith('-1 ') ? 2 : 3}T${time.replace('-1 ', '')}`)
  await withTimedLake('', { lines }, async (lake) => {
    for (const { asset, local, date } of cases) {
      lake.configure(config([asset]))
      await lake.fetchAt(on(local), date === null ? null : on(date))
    }
    lake.configure(config(cases.map(({ asset }) => asset)))
    await lake.fetchAt(at('2024-03-05T00:00'))
    await asked(lake, async (engine) => {
      const rows = await engine.rows(
        `SELECT asset, list(basis || ' ' || v::INT ORDER BY t) AS told FROM points GROUP BY asset`,
      )
      const found = Object.fromEntries(rows.map(({ asset, told }) => [asset as string, told]))
      const owed = cases.map(({ asset, basis }) => [asset, ['override 100', `${basis} 200`]])
      expect(found).toEqual(Object.fromEntries(owed))
    })
  })
})

test('history begins where a rule is passed by thirty days and thirty intervals, not a second before', async () => {
  const height = 'blockchain/block_height_pit'
  const cases = [
    { path: blocks, interval: '10m', start: '02-29', ruled: (t: number) => t + 600 + 2400 },
    { path: blocks, interval: '1h', start: '02-29', ruled: (t: number) => t + 3600 + 2400 },
    { path: blocks, interval: '24h', start: '02-28', ruled: (t: number) => t + 86_400 + 2400 },
    { path: blocks, interval: '1w', start: '2023-12-18T00:00', ruled: (t: number) => t + 604_800 + 2400 },
    { path: blocks, interval: '1month', start: '2023-12-01T00:00', ruled: (t: number) => endOf(t, '1month') + 2400 },
    { path: height, interval: '24h', start: '02-28', ruled: (t: number) => t + 2 * 86_400 + 615 * 60 },
  ] as const
  const beyond = [-1, 0, 0.5, 1]
  const lines = cases.map(({ path, interval, start, ruled }): Line => {
    const starts = beyond.map((_, i) => startAfter(at(start), interval, i))
    const computed = (t: number, i: number): number => ruled(t) + historyAfter[interval] + (beyond[i] ?? 0)
    return {
      path,
      asset: 'BTC',
      interval,
      points: starts.map((t, i) => ({ t, v: i, computed: computed(t, i), shown: 0 })),
    }
  })
  const every = cases.map(
    ({ path, interval, start }) =>
      `{ assets: [BTC], paths: [${path}], intervals: [${interval}], since: ${new Date(at(start) * 1000).toISOString()} }`,
  )
  const yaml = `metrics:
${basics}  availability:
    blockchain/*: { lag: 40m }
    ${height}: { daily_at: "10:15", days: 2 }
select: [${every.join(', ')}]
`
  await withTimedLake(yaml, { lines }, async (lake) => {
    await lake.fetchAt(at('2028-01-01T00:00'))
    await asked(lake, async (engine) => {
      const dated = async (): Promise<string[]> => {
        const rows = await engine.rows<{ line: string; at: number; basis: string }>(
          `SELECT concat_ws(' ', metric, "interval", epoch(t)::BIGINT) AS line,
            epoch_us(available_at)::DOUBLE / 1e6 AS at, basis FROM points`,
        )
        return rows.map(({ line, at, basis }) => `${line} ${at} ${basis}`).toSorted()
      }
      const owed = (backfill: boolean): string[] =>
        lines
          .flatMap(({ path, interval, points }, n) =>
            points.map(({ t, computed }, i) => {
              const line = `${path} ${interval} ${t}`
              return backfill && i > 1 ? `${line} ${cases[n]?.ruled(t)} backfilled` : `${line} ${computed} provider`
            }),
          )
          .toSorted()
      expect(await dated()).toEqual(owed(false))
      await engine.run(`SET VARIABLE backfill = 'rule'`)
      expect(await dated()).toEqual(owed(true))
    })
  })
})

test('if t marks ends, the first interval of the metadata is requested, too', async () => {
  const starts = [0, 1, 2, 3].map((i) => startAfter(first, '24h', i))
  const points = starts.map((t, i) => ({ t, v: i, shown: endOf(t, '24h') }))
  const yaml = `metrics:
${basics.replace('  metadata: false\n', '')}  timestamp: interval_end
select: [{ assets: [BTC], paths: [${sopr}], since: 2024-02-01 }]
`
  const provider = {
    lines: [{ path: sopr, asset: 'BTC', interval: '24h', points }],
    marks: 'end',
    begins: second,
  } as const
  await withTimedLake(yaml, provider, async (lake) => {
    expect(await lake.fetchAt(at('03-05') + 7200)).toMatchObject({ points_added: 4 })
    expect(lake.queries.map((query) => [query.get('s'), query.get('u')])).toEqual([
      [String(second), String(at('03-06'))],
    ])
  })
})
