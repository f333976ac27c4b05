// @module-tag full
import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'

/** A file of rows that begin at the dates, with the values 1, 2, 3 …. */
function csv(dates: readonly string[]): string {
  return `asset,t,value\n${dates.map((t, n) => `US,${t},${n + 1}\n`).join('')}`
}

test('rows a quarter apart are read as quarters without --interval, rows a month apart as months', async () => {
  const files = [
    [['2024-01-01', '2024-04-01', '2024-07-01'], '3month'],
    [['2023-01-01', '2023-04-01'], '3month'],
    [['2024-07-01', '2024-10-01', '2025-10-01'], '3month'],
    [['2024-01-01', '2024-02-01', '2024-04-01'], '1month'],
  ] as const
  await withDesk(async (desk) => {
    for (const [n, [dates]] of files.entries())
      expect((await desk.take([desk.put('gdp.csv', csv(dates)), '--as', `gdp${n}`])).message).toBe('')
    const found = await desk.rows('SELECT DISTINCT metric, "interval" FROM points ORDER BY metric')
    expect(found).toEqual(files.map(([, interval], n) => ({ metric: `own/gdp${n}`, interval })))
  })
})

test('rows of other distances, or a quarter apart from February on, are refused until an interval is named', async () => {
  await withDesk(async (desk) => {
    for (const [dates, apart] of [
      [['2023-02-01', '2023-05-01', '2023-08-01'], 89],
      [['2024-02-01', '2024-05-01', '2024-08-01'], 90],
      [['2024-01-01', '2024-07-01'], 182],
      [['2023-01-01', '2024-01-01'], 365],
    ] as const) {
      const { code, message } = await desk.take([desk.put('gdp.csv', csv(dates)), '--as', 'gdp'])
      const wanted = new RegExp(
        `--interval: expected one of .*1month, 3month, got rows ${apart * 86_400} seconds apart`,
      )
      expect([code, message]).toEqual([2, expect.stringMatching(wanted)])
    }
  })
})

test('a quarter that begins outside of January, April, July and October is refused with its row', async () => {
  await withDesk(async (desk) => {
    for (const stray of ['2024-05-01', '2024-03-31', '2024-04-02']) {
      const file = desk.put('gdp.csv', csv(['2024-01-01', stray]))
      const { code, message } = await desk.take([file, '--as', 'gdp', '--interval', '3month'])
      const wanted =
        /gdp.csv: row 2: t: expected the start of an interval of 3month, .* in January, April, July or October/
      expect([code, message], stray).toEqual([2, expect.stringMatching(wanted)])
    }
  })
})

/** The same quarters, named by their last days, by instants, and by the days after. */
const ends = {
  'last days': ['2023-12-31', '2024-03-31'],
  instants: ['2024-01-01T00:00:00Z', '2024-04-01T00:00:00Z'],
}

for (const [name, dates] of Object.entries(ends))
  test(`rows that name the ends of quarters by ${name} are stored at their starts`, async () => {
    await withDesk(async (desk) => {
      const file = desk.put('gdp.csv', csv(dates))
      const { code, message } = await desk.take([
        file,
        '--as',
        'gdp',
        '--interval',
        '3month',
        '--timestamp',
        'interval_end',
      ])
      expect([code, message]).toEqual([0, ''])
      expect(await desk.rows(`SELECT strftime(t, '%Y-%m-%d') AS t, v FROM points ORDER BY t`)).toEqual([
        { t: '2023-10-01', v: 1 },
        { t: '2024-01-01', v: 2 },
      ])
    })
  })

test('rows that name the ends of quarters by the days after them are refused', async () => {
  await withDesk(async (desk) => {
    const file = desk.put('gdp.csv', csv(['2024-01-01', '2024-04-01']))
    const taken = await desk.take([file, '--as', 'gdp', '--interval', '3month', '--timestamp', 'interval_end'])
    expect([taken.code, taken.message]).toEqual([
      2,
      expect.stringMatching(/gdp.csv: row 1: t: expected the end of an interval/),
    ])
  })
})

test('a date that names the end of its day is known from its midnight on, in every zone and format', async () => {
  const select = (type: string) =>
    `SELECT 'US' AS asset, CAST(d AS ${type}) AS t, 1.0 AS value FROM (VALUES ('2024-03-01'), ('2024-03-02')) AS x (d)`
  for (const type of ['VARCHAR', 'DATE'])
    await withDesk(async (desk) => {
      expect((await desk.take([select(type), '--as', 'close', '--timestamp', 'interval_end'])).message).toBe('')
      expect(
        await desk.rows(
          `SELECT CAST(t AS VARCHAR) AS t, CAST(available_at AS VARCHAR) AS known FROM points ORDER BY t`,
        ),
      ).toEqual([
        { t: '2024-03-01 00:00:00+00', known: '2024-03-02 00:00:00+00' },
        { t: '2024-03-02 00:00:00+00', known: '2024-03-03 00:00:00+00' },
      ])
    })
})

test('two values of one quarter are refused with the time as each kind of file writes it', async () => {
  const rows = [
    { asset: 'US', t: '2023-12-31', value: 1 },
    { asset: 'US', t: '2024-03-31', value: 2 },
    { asset: 'US', t: '2024-03-31', value: 3 },
  ]
  const named = (type: string) =>
    `SELECT 'US' AS asset, CAST(d AS ${type}) AS t, v AS value FROM (VALUES ${rows.map(({ t, value }) => `('${t}', ${value}.0)`).join(', ')}) AS x (d, v)`
  const flags = ['--as', 'gdp', '--interval', '3month', '--timestamp', 'interval_end']
  await withDesk(async (desk) => {
    const sources = [
      desk.put('gdp.csv', `asset,t,value\n${rows.map(({ asset, t, value }) => `${asset},${t},${value}\n`).join('')}`),
      desk.put('gdp.jsonl', rows.map((row) => JSON.stringify(row)).join('\n')),
      named('VARCHAR'),
      named('DATE'),
    ]
    for (const source of sources) {
      const { code, message } = await desk.take([source, ...flags])
      const wanted =
        'row 3: value: expected one value for US at 2024-03-31, for which another row has a different value'
      expect([code, message], source).toEqual([2, expect.stringContaining(wanted)])
    }
  })
})

/** One second before and exactly when each of three quarters is known, 30 days after its end. */
const decisions = `CREATE TEMP TABLE decisions AS SELECT 'US' AS asset, unnest(['2024-01-30 23:59:59', '2024-01-31',
  '2024-04-30 23:59:59', '2024-05-01', '2024-07-30 23:59:59', '2024-07-31']::TIMESTAMP[]) AS ts`

test('quarters of a file are known at their ends in joins and windows, and a missing one is a gap', async () => {
  await withDesk(async (desk) => {
    const file = desk.put('gdp.csv', csv(['2023-10-01', '2024-01-01', '2024-04-01', '2024-10-01']))
    expect((await desk.take([file, '--as', 'gdp', '--available', 'end+30d'])).message).toBe('')
    using engine = await desk.open()
    await engine.run(decisions)
    const ask = async (sql: string): Promise<unknown[]> => (await engine.rows(sql)).map(({ x }) => x)
    for (const join of [
      `pit_join('decisions', 'own/gdp', '3month')`,
      `pit_long('decisions', ['own/gdp'], '3month')`,
      `pit_join('decisions', 'own/gdp', '3month', latency := INTERVAL 1 SECOND - INTERVAL 1 SECOND, max_age := INTERVAL 40 DAY)`,
    ])
      expect(await ask(`SELECT v AS x FROM ${join} ORDER BY ts`), join).toEqual(
        join.includes('max_age') ? [null, 1, null, 2, null, 3] : [null, 1, 1, 2, 2, 3],
      )
    const window = `FROM pit_window('decisions', 'own/gdp', '3month', 2) WHERE ts = TIMESTAMP '2024-07-31'`
    expect(await ask(`SELECT strftime(t, '%Y-%m-%d ') || v AS x ${window} ORDER BY t`)).toEqual([
      '2024-01-01 2.0',
      '2024-04-01 3.0',
    ])
    const dates = `strftime(since, '%Y-%m-%d ') || strftime("until", '%Y-%m-%d')`
    expect(await ask(`SELECT ${dates} AS x FROM gaps`)).toEqual(['2024-07-01 2024-10-01'])
    expect(await ask(`SELECT ${dates} || ' ' || state AS x FROM coverage ORDER BY since`)).toEqual([
      '2023-10-01 2024-07-01 covered',
      '2024-07-01 2024-10-01 covered',
      '2024-10-01 2025-01-01 covered',
    ])
    expect(await ask(`SELECT strftime(available_at, '%Y-%m-%d') AS x FROM points WHERE v = 4`)).toEqual(['2025-01-31'])
    const status = await desk.run(['status', '--json'])
    expect([status.code, status.message]).toEqual([0, ''])
    expect(JSON.stringify(JSON.parse(status.out))).toContain('own/gdp')
  })
})

test('months add up to quarters, and quarters to nothing', async () => {
  await withDesk(async (desk) => {
    const months = Array.from({ length: 8 }, (_, n) => `2024-0${n + 1}-01`)
    expect((await desk.take([desk.put('m.csv', csv(months)), '--as', 'm'])).message).toBe('')
    const quarters = `SELECT strftime(t, '%Y-%m-%d') AS t, parts, complete, v, strftime(available_at, '%Y-%m-%d') AS known
      FROM resample('own/m', '1month', '3month', 'sum') ORDER BY t`
    expect(await desk.rows(quarters)).toEqual([
      { t: '2024-01-01', parts: 3n, complete: true, v: 6, known: '2024-04-01' },
      { t: '2024-04-01', parts: 3n, complete: true, v: 15, known: '2024-07-01' },
      { t: '2024-07-01', parts: 2n, complete: false, v: null, known: '2024-09-01' },
    ])
    expect((await desk.take([desk.put('q.csv', csv(['2024-01-01', '2024-04-01'])), '--as', 'q'])).message).toBe('')
    for (const to of ['1month', '24h', '1w', '3month'])
      await expect(desk.rows(`FROM resample('own/q', '3month', '${to}', 'sum')`), to).rejects.toThrow(/cannot resample/)
  })
})

test('quarters are never requested from a provider: catalogue, configuration and selection refuse them', async () => {
  await withDesk(async (desk) => {
    const refused = await desk.run(['plan', '--assets', 'BTC', '--intervals', '3month'])
    expect([refused.code, refused.message]).toEqual([
      2,
      expect.stringMatching(/intervals: 3month: expected one of .*1month, got 3month/),
    ])
    const row = (interval: string): string =>
      `endpoints: [{ path: q/p, intervals: [${interval}] }]\navailability: [{ paths: [q/p], lag: 1h, basis: assumed, reason: r }]\n`
    expect((await desk.run(['catalog', 'check', desk.put('a.yaml', row('1month'))])).message).toBe('')
    const { code, message } = await desk.run(['catalog', 'check', desk.put('a.yaml', row('3month'))])
    expect([code, message]).toEqual([
      2,
      expect.stringMatching(/intervals: expected intervals among .*1month, got 3month/),
    ])
  })
})
