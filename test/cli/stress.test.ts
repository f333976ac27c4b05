// @module-tag full
// @module-tag slow
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stress } from '../../src/index.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import type { Stressed } from '../../src/trust/results/stress.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import { fastStrategy, signalAndReturns, signalMetrics, slowStrategy } from '../helpers/lakes/signal-and-returns.ts'
import { sample } from '../helpers/tiers.ts'

const lake = lakeOfFile(signalAndReturns)

const sharpe = 'avg(r) / stddev(r)'
/** Said where all columns but the instant may look ahead. */
const unjudged = 'look-ahead was not judged: no column to compare beside the instant and the labels'
const home = (): string => join(lake.root, '..')

async function stressed(sql: string, ...options: readonly string[]): Promise<Ended> {
  writeFileSync(join(home(), 'q.sql'), sql)
  return await pitlake(home(), ['stress', 'q.sql', '--data', lake.root, '--labels', 'r', ...options])
}

async function told(sql: string, ...options: readonly string[]): Promise<Stressed & { readonly code: number }> {
  const { code, out, message } = await stressed(sql, '--json', ...options)
  if (out === '') throw new Error(message)
  return { ...(JSON.parse(out) as Stressed), code }
}

async function rowsOf(sql: string, ...options: readonly string[]): Promise<string> {
  const { out, code } = await pitlake(home(), [
    'sql',
    sql,
    '--data',
    lake.root,
    '--format',
    'json',
    '--out',
    'x.json',
    ...options,
  ])
  expect([code, out]).toEqual([0, ''])
  return readFileSync(join(home(), 'x.json'), 'utf8')
}

/** The statistic as SQL gives it at those clocks, by no part of the command. */
async function statistic(sql: string, ...options: readonly string[]): Promise<number> {
  const rows = JSON.parse(await rowsOf(`SELECT ${sharpe} AS f FROM (${sql})`, ...options)) as readonly {
    readonly f: number
  }[]
  return rows[0]?.f ?? Number.NaN
}

/** Every file of the lake but its locks, by what is in it. */
function contents(): readonly string[] {
  const names = readdirSync(lake.root, { recursive: true }).map(String).toSorted()
  return names.flatMap((name) => {
    const path = join(lake.root, name)
    return statSync(path).isFile() && !/sqlite-(?:shm|wal)$/.test(name)
      ? [`${name} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`]
      : []
  })
}

test('a query or a statistic that reads files is undecided: nothing delays those, wherever they are named', async () => {
  const file = readdirSync(lake.root, { recursive: true, encoding: 'utf8' }).find((name) =>
    /^points.*parquet$/.test(name),
  )
  const path = `'${join(lake.root, file ?? '')}'`
  const asked: readonly (readonly [sql: string, statistic: string])[] = [
    [
      `CREATE TEMP TABLE own AS SELECT 0 AS nought FROM ${path} LIMIT 1; SELECT q.* FROM (${fastStrategy}) AS q, own`,
      sharpe,
    ],
    [fastStrategy, `${sharpe} + (SELECT 0 * count(*) FROM ${path})`],
  ]
  for (const [sql, text] of asked)
    expect(await told(sql, '--statistic', text, '--lag', '1h')).toMatchObject({
      verdict: 'undecided',
      reason: expect.stringMatching(/^it reads files directly \(/),
    })
})

test('stress names a strategy that depends on twenty minutes, its metric and the earlier result; the lake stays unchanged', async () => {
  const before = contents()
  const done = await told(fastStrategy, '--statistic', sharpe, '--lag', '16m,24m', '--latency', '15m,45m')
  expect([done.code, done.verdict, done.bears_seconds]).toEqual([4, 'falls', 1200])
  expect(done.reason).toBe(
    `the statistic goes from 3.581 to -0.007677 with points 24m later; it survives a delay of 20m and depends most on ${signalMetrics.signal}`,
  )
  expect(done.statistic).toBe(await statistic(fastStrategy))
  const fates = done.runs.map(({ kind, name, falls }) => `${kind} ${name} ${falls}`)
  expect(fates).toEqual(['lag 16m false', 'lag 24m true', 'latency 15m false', 'latency 45m true', 'version 1 false'])
  expect(done.delay).toEqual({ kind: 'lag', name: '24m' })
  expect(done.metrics.map(({ metric, share }) => [metric, share])).toEqual([
    [signalMetrics.signal, 1],
    [signalMetrics.hourly, 0],
    [signalMetrics.wave, 0],
  ])
  const then = '2025-03-01T00:00:00Z'
  const version = done.runs.find(({ kind }) => kind === 'version')
  expect(version).toMatchObject({ name: '1', at: '2025-03-01T00:00:00.000000Z', changed: 504 })
  expect(version?.statistic).toBe(await statistic(fastStrategy, '--as-of', then, '--observed-as-of', then))
  expect(version?.before).toBe(await statistic(fastStrategy, '--as-of', then))
  expect(contents()).toEqual(before)
})

test('an honest slow one is not named by the package, though a day moves it; what is set holds in each run', async () => {
  const lags = [0, 1800, 3600, 86_400]
  const done = await stress(lake.root, slowStrategy, { statistic: sharpe, labels: ['r'], lags, vintages: 0 })
  expect([done.verdict, done.reason, done.bears_seconds]).toEqual(['holds', null, null])
  expect(done.statistic).toBe(await statistic(slowStrategy))
  expect(done.runs.map(({ kind, name, changed }) => [kind, name, changed > 0])).toEqual([
    ['lag', '30m', false],
    ['lag', '1h', false],
    ['lag', '1d', true],
  ])
  expect(done.metrics[0]).toMatchObject({ metric: signalMetrics.wave, share: 1 })
  const asked = {
    statistic: 'count(*)',
    labels: ['r'],
    lags: [],
    latencies: [60],
    vintages: 0,
    set: { as_of: '2024-02-01' },
  }
  const early = await stress(lake.root, slowStrategy, asked)
  expect([early.verdict, early.runs.length]).toEqual(['holds', 1])
})

test('a quantile of lags without a known arrival is noted and not tried', async () => {
  const early = fastStrategy.replaceAll('01:22', '01:05').replace('82 MINUTES', '65 MINUTES')
  const done = await told(early, '--statistic', sharpe, '--lag', 'p50,max', '--vintages', '0')
  expect(done.runs.map(({ name, falls }) => [name, falls])).toEqual([
    ['p50', false],
    ['max', true],
  ])
  expect(done.reason).toMatch(/ with points as late as the latest of their metric; it depends most on indicators\//)
  expect(done.notes).toEqual([
    expect.stringMatching(/^no arrival is known of .*: they stay as the rule says under p50, max$/),
    unjudged,
  ])
  const silent = await told(slowStrategy, '--statistic', sharpe, '--lag', 'p95', '--vintages', '0')
  expect([silent.runs, silent.notes]).toEqual([
    [],
    [expect.stringMatching(/: all stays as the rule says under p95$/), unjudged],
  ])
})

const grid = `calendar('2024-01-03', '2024-01-12', '1 day') AS c`
const daily = `(FROM points WHERE metric = '${signalMetrics.daily}') AS p`

test.for([
  ['a value of its own day', `SELECT c.ts, p.v AS v FROM ${grid} JOIN ${daily} ON p.t = c.ts`, 'leak', /joined on t/],
  [
    'the best of all days, in a variable',
    `SET VARIABLE m = (SELECT max(v) FROM points); SELECT c.ts, getvariable('m') + 0 * hour(c.ts) AS v FROM ${grid}`,
    'leak',
    /looks ahead/,
  ],
  [
    'what was known, in other letters',
    `SELECT c.ts AS TS, p.v AS v FROM ${grid} ASOF JOIN ${daily} ON p.available_at <= c.ts`,
    'holds',
    null,
  ],
  [
    'the same with a label that looks ahead',
    `SELECT c.ts, p.v AS v, n.v AS r FROM ${grid} ASOF JOIN ${daily} ON p.available_at <= c.ts
      LEFT JOIN (FROM points WHERE metric = '${signalMetrics.daily}') AS n ON n.t = c.ts`,
    'holds',
    null,
  ],
] as const)('stress judges look-ahead before any delay: %s is %s', async ([, sql, verdict, reason]) => {
  const labels = sql.includes('AS r FROM') ? ['r'] : []
  const asked = { statistic: 'avg(v)', lags: [60], vintages: 0, within: 100, labels }
  const done = await stress(lake.root, sql, asked)
  expect(done.verdict).toBe(verdict)
  if (reason === null) expect(done.notes.join()).not.toContain('look-ahead')
  else expect([done.runs, done.reason]).toEqual([[], expect.stringMatching(reason)])
})

test('the leak of the notebooks ends stress with 4, its stamp is a leak that replay repeats', async () => {
  const leak = readFileSync('notebooks/leak.sql', 'utf8').replace('addresses/active_count_pit', signalMetrics.daily)
  writeFileSync(join(home(), 'leak.sql'), leak)
  const run = [
    'stress',
    'leak.sql',
    '--data',
    lake.root,
    '--statistic',
    'avg(v)',
    '--lag',
    '1h',
    '--out',
    'leak.parquet',
  ]
  const { code, out, message } = await pitlake(home(), run)
  expect([code, message]).toEqual([4, expect.stringMatching(/^leak\.sql looks ahead: .*--labels/)])
  expect(out).toMatch(/^leak\.sql: looks ahead, the query looks ahead, .* on 2024-/)
  const again = await pitlake(home(), ['replay', 'leak.parquet', '--data', lake.root])
  expect([again.code, again.out]).toEqual([0, expect.stringMatching(/the same bit for bit/)])
})

test('a stamped result is tried over the version that it was made from', async () => {
  writeFileSync(join(home(), 's.sql'), fastStrategy)
  const at = ['--observed-as-of', '2025-03-01T12:00:00Z']
  const stamped = await pitlake(home(), ['stamp', 's.sql', '--data', lake.root, '--out', 'r.parquet', ...at])
  expect([stamped.code, stamped.message]).toEqual([0, ''])
  const run = [
    'stress',
    'r.parquet',
    '--data',
    lake.root,
    '--statistic',
    sharpe,
    '--labels',
    'r',
    '--lag',
    '20m,21m',
    '--json',
  ]
  const { code, out } = await pitlake(home(), run)
  const done = JSON.parse(out) as Stressed
  expect([code, done.verdict, done.statistic, done.rows]).toEqual([
    4,
    'falls',
    await statistic(fastStrategy, ...at),
    191,
  ])
  expect((await pitlake(home(), [...run, '--as-of', '2024-01-01'])).message).toMatch(
    /a stamped result with its own variables/,
  )
  writeFileSync(join(home(), 'r.parquet'), readFileSync(join(home(), 'r.parquet')).with(300, 1))
  expect((await pitlake(home(), run)).code).toBe(4)
})

test('stress prints tables and bars, and --plot writes a picture', async () => {
  const { out, message, code } = await stressed(
    fastStrategy,
    '--statistic',
    sharpe,
    '--lag',
    '20m,21m',
    '--plot',
    'p.svg',
  )
  expect([code, message]).toEqual([4, expect.stringMatching(/^q\.sql falls apart: the statistic goes from 3\.581 to /)])
  expect(out).toMatch(/^q\.sql: falls apart, the statistic goes from 3\.581 to -0\.007677 with points 21m later; /)
  expect(out).toMatch(/^as it is +3\.581 +of 695 +█{30}$/m)
  expect(out).toMatch(/^21m later +-0\.007677 +-100 % +346 +▒$/m)
  expect(out).toMatch(/^of each metric alone, with points 21m later:$/m)
  expect(out).toMatch(/^1 +2025-03-01 00:00Z +3\.708 +3\.581 +3\.5 % +504 +█{30}$/m)
  const svg = readFileSync(join(home(), 'p.svg'), 'utf8')
  expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" /)
  expect([...svg.matchAll(/<rect x=/g)]).toHaveLength(4)
  expect(svg).toContain('fill="#bf4f3a"')
})

test('a query or statistic that cannot be judged is undecided with the reason', async () => {
  const grid = `SELECT ts FROM calendar('2024-01-01', '2024-01-09', '1 day')`
  const drawn = await stressed(`SELECT random() AS r FROM (${grid})`, '--statistic', 'avg(r)')
  expect([drawn.code, drawn.message]).toEqual([
    6,
    expect.stringMatching(/^q\.sql is undecided: two runs .* not deterministic; /),
  ])
  const none = await stressed(
    `SELECT CAST(NULL AS DOUBLE) AS r FROM (${grid})`,
    '--statistic',
    'SELECT avg(r) FROM result',
  )
  expect([none.code, none.message]).toEqual([
    6,
    expect.stringMatching(/the statistic is not a number on the lake as it is; correct/),
  ])
  const still = await told(`SELECT 1 AS r FROM (${grid})`, '--statistic', 'sum(r)', '--lag', '1d')
  expect([still.code, still.notes]).toEqual([
    0,
    [
      expect.stringMatching(/^look-ahead was not judged: no column r to be a label|no column ts/),
      expect.stringMatching(/^no delay changes a row: .*lookahead/),
    ],
  ])
})

test.each([
  [['--lag', '1h'], /^--statistic: expected SQL of one number .*, got nothing$/],
  [['--statistic', 'SELECT 1, 2'], /^--statistic: expected SQL of one number, got SELECT of 2 columns/],
  [['--statistic', 'r'], /^--statistic: expected SQL of one number, got several rows/],
  [['--statistic', 'SELECT r FROM result WHERE false'], /got no row/],
  [['--statistic', 'DROP TABLE result'], /^--statistic: expected SQL of one number, got DROP/],
  [['--statistic', "SELECT count(*) FROM read_csv('/etc/passwd')"], /expected files of the lake/],
  [['--statistic', 'avg(nope)'], /nope/],
  [
    ['--statistic', 'avg(r)', '--lag', 'soon'],
    /^--lag: expected times such as 30m or 1d, or p50, p95, p99, max, got "soon"$/,
  ],
  [['--statistic', 'avg(r)', '--latency', 'p95'], /^--latency: expected times such as 30m or 1d, got "p95"$/],
  [['--statistic', 'avg(r)', '--lag', '500d'], /^--lag: expected /],
  [['--statistic', 'avg(r)', '--within', 'half'], /^--within: expected a number such as 0\.5, got "half"$/],
  [['--statistic', 'avg(r)', '--set', 'strange=1'], /strange/],
])('%j is refused', async (options, words) => {
  const { code, message } = await stressed('SELECT unnest([1, 2]) AS r', ...options)
  expect([code, message]).toEqual([2, expect.stringMatching(words)])
})

/** What takes longest: many delays are tried, and tried again from the stamp. */
const outcomes: Readonly<Record<string, () => Promise<void>>> = {
  'an outcome is stamped, and tried again by replay; it is no result of a query': async () => {
    writeFileSync(join(home(), 'q.sql'), fastStrategy)
    const lags = ['--lag', 'p95,20m,21m', '--latency', '1h', '--vintages', '1']
    const run = [
      'stress',
      'q.sql',
      '--data',
      lake.root,
      '--statistic',
      sharpe,
      '--labels',
      'r',
      ...lags,
      '--out',
      'outcome.parquet',
      '--json',
    ]
    const { code, out } = await pitlake(home(), run)
    const done = JSON.parse(out) as Stressed
    expect([code, done.verdict, done.bears_seconds]).toEqual([4, 'falls', 1200])
    const path = join(home(), 'outcome.parquet')
    using engine = await Engine.open(':memory:', { threads: 1 })
    const rows = await engine.rows(`SELECT kind, name, statistic, falls FROM read_parquet('${path}')`)
    expect(rows.map(({ kind, name, statistic: value, falls }) => [kind, name, value, falls])).toEqual([
      ['as it is', null, done.statistic, null],
      ...done.runs.map((one) => [one.kind, one.name, one.statistic, one.falls]),
      ...done.metrics.map((one) => ['metric', one.metric, one.statistic, null]),
      ['bears', 'seconds', 1200, null],
      ['verdict', 'falls', null, null],
    ])
    const again = await pitlake(home(), ['replay', 'outcome.parquet', '--data', lake.root])
    expect([again.code, again.out]).toEqual([0, `${rows.length} rows of version 2, the same bit for bit\n`])
    for (const command of ['stress', 'explain-change']) {
      const refused = await pitlake(home(), [
        command,
        'outcome.parquet',
        '--data',
        lake.root,
        ...(command === 'stress' ? ['--statistic', '1'] : []),
      ])
      expect([refused.code, refused.message]).toEqual([
        2,
        expect.stringMatching(/a stamped result of a query, got the outcome of pitlake stress/),
      ])
    }
    const page = join(home(), 'page.html')
    await pitlake(home(), ['stamp', 'q.sql', '--data', lake.root, '--out', 'plain.parquet'])
    await pitlake(home(), ['status', '--data', lake.root, '--html', page])
    const html = readFileSync(page, 'utf8')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ')
    expect(html).toMatch(/outcome\.parquet 2 \S+ \S+ UTC 11 falls apart/)
    expect(html).toMatch(/plain\.parquet 2 \S+ \S+ UTC 695 look-ahead not proved/)
  },
  'the outcome for a stamped result is stamped over its version, whatever came since': async () => {
    writeFileSync(join(home(), 'old.sql'), fastStrategy)
    const query = ['stamp', 'old.sql', '--data', lake.root, '--out', 'old.parquet', '--as-of', '2025-02-01']
    const stamped = await pitlake(home(), query)
    expect([stamped.code, stamped.message]).toEqual([0, ''])
    const { metric, asset } = { metric: signalMetrics.signal, asset: 'BTC' }
    const late = { metric, asset, interval: '1h' as const, currency: null, exchange: null, network: null, v: 9 }
    const when = '2025-01-05T00:00:00Z'
    await makeLake(lake.root, [{ at: '2026-01-01T00:00:00Z', points: [{ ...late, t: when, available_at: when }] }])
    await makeViews(lake.root)
    const run = [
      'stress',
      'old.parquet',
      '--data',
      lake.root,
      '--labels',
      'r',
      '--statistic',
      sharpe,
      '--lag',
      '20m',
      '--vintages',
      '1',
    ]
    const plain = JSON.parse((await pitlake(home(), [...run, '--json'])).out) as Stressed
    const { code, out } = await pitlake(home(), [...run, '--json', '--out', 'borne.parquet'])
    expect([code, JSON.parse(out)]).toEqual([0, plain])
    const again = await pitlake(home(), ['replay', 'borne.parquet', '--data', lake.root])
    expect([again.code, again.out]).toEqual([0, expect.stringMatching(/ rows of version 2, the same bit for bit\n$/)])
    const refused = await pitlake(home(), [...run, '--out', 'no.parquet', '--as-of', '2024-01-01'])
    expect([refused.code, refused.message]).toEqual([2, expect.stringMatching(/with its own variables/)])
  },
}

test.each(sample(Object.entries(outcomes), 2))('%s', async (_, work) => expect(await work()).toBeUndefined())
