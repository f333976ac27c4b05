import { mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { usage } from '../../base/errors.ts'
import { instantOf } from '../../base/time.ts'
import type { Selection } from '../../catalog/series.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { temporaryFolder } from '../../lake/store/files.ts'
import { putOut } from '../../lake/store/output.ts'
import { openQuery } from '../../query/lake.ts'
import { bringViewsForward } from '../../query/views/current.ts'
import { fetchSeries } from '../../sources/metrics/fetch.ts'
import type { LookaheadProof } from '../../trust/lookahead/lookahead.ts'
import { leakSentence } from '../../trust/lookahead/sentence.ts'
import { readContext } from '../cli/context.ts'
import { showLive, talking, type Typed } from '../cli/spec.ts'
import { askingWorld, lakeWorld } from '../cli/world.ts'
import { proveQuery } from './lookahead.ts'
import { withSandbox } from './sandbox.ts'

/** Start of the clock of the demo, which makes its results the same every day. */
const firstInstant = instantOf('2026-07-01T06:00:00Z')

/** Selections of the demo: an hourly price, which is market value over supply, and a daily signal. */
const selections: readonly Selection[] = [
  {
    assets: ['BTC'],
    paths: ['supply/current_pit'],
    intervals: ['1h'],
    currencies: ['native', 'usd'],
    since: instantOf('2024-01-01'),
  },
  { assets: ['BTC'], paths: ['indicators/sopr_adjusted_pit'], intervals: ['24h'], since: instantOf('2023-11-01') },
]

/** Cut-offs at which each query runs again. */
const cutoffs = 10

/** One of the two backtests. */
interface Backtest {
  readonly name: string
  /** Name of its file. */
  readonly file: string
  readonly sql: string
  /** The line in which it differs from the other. */
  readonly line: string
  /** Sharpe ratio of its daily returns, annualised. */
  readonly sharpe: number
  readonly proof: LookaheadProof
}

export const demoCommand = talking({
  options: { '--keep DIR': 'leave the lake and both queries in DIR (default: a temporary folder that is removed)' },
  details: `Makes a small lake of synthetic data, runs two backtests that differ in one line of SQL, and tests both for look-ahead.
It needs no key, no network and no lake, and takes about ten seconds.`,
  run: async (call) => {
    const { keep } = call.options
    if (keep === undefined) {
      await using scratch = await temporaryFolder()
      call.stdout(inWords(await runBacktests(call, scratch.path), null))
      return
    }
    const folder = resolve(call.cwd, keep)
    if (isBegun(join(folder, 'lake')))
      throw usage('--keep', { expected: 'a folder without a demo', got: keep, next: 'name a new folder' })
    mkdirSync(folder, { recursive: true })
    const backtests = await runBacktests(call, folder)
    for (const { file, sql } of backtests) await putOut(join(folder, file), sql, null, 'demo')
    call.stdout(inWords(backtests, keep))
  },
})

/** Makes a lake in the folder, then runs and tests both backtests on it. */
async function runBacktests(call: Typed, folder: string): Promise<readonly Backtest[]> {
  const data = join(folder, 'lake')
  showLive(call, 'making a small lake of synthetic data')
  await makeLake(call, data)
  const files = ['joined-on-t.sql', 'point-in-time.sql']
  const texts = files.map((file) => readFileSync(new URL(`../../../catalog/demo/${file}`, import.meta.url), 'utf8'))
  const backtests: Backtest[] = []
  for (const [n, sql] of texts.entries()) {
    const file = files[n] ?? ''
    const name = file.replace('.sql', '').replaceAll('-', ' ')
    showLive(call, `running and testing the backtest ${name}`)
    const trial = { ts: 'ts', labels: [], cutoffs, tolerance: 0 }
    const { signal, sleep } = call
    const proof = await proveQuery({ text: sql, set: {} }, trial, { folder: data, signal, sleep })
    backtests.push({
      name,
      file,
      sql,
      line: lineOnlyIn(sql, texts[1 - n] ?? ''),
      sharpe: await sharpeOf(data, sql),
      proof,
    })
  }
  showLive(call, '')
  return backtests
}

/** Makes a lake with the series of the demo, which a sandbox in this process serves. */
async function makeLake(call: Typed, data: string): Promise<void> {
  const origin = call.now()
  const now = (): number => firstInstant * 1000 + (call.now() - origin)
  // Neither the caller's configuration nor the caller's provider has a part in it.
  const alone: Typed = {
    ...call,
    now,
    env: {},
    cwd: join(data, '..'),
    options: { ...call.options, data, config: undefined },
  }
  await withSandbox({ seed: 1, scale: 'demo' }, alone, async (env) => {
    const context = await readContext({ ...alone, env })
    const { settings, catalogue } = context
    await fetchSeries(
      { settings, catalogue, selections, gapsOnly: false, now: firstInstant, maxRequests: null, providerMoved: false },
      { ...askingWorld(context, 'demo'), onEvent: () => undefined },
    )
    await bringViewsForward(data, { catalogue, deps: lakeWorld(context, 'demo') })
  })
}

/** Computes the annualised Sharpe ratio of what the positions of a query earn from one day to the next. */
async function sharpeOf(data: string, sql: string): Promise<number> {
  using engine = await openQuery(data)
  const [row] = await engine.rows<{ sharpe: number }>(`
    WITH prices AS (SELECT t + INTERVAL 1 HOUR AS ts, v AS price FROM price_usd WHERE asset = 'BTC' AND "interval" = '1h'),
    backtest AS (${sql.replace(/;\s*$/, '')}),
    earned AS (
      SELECT position * (next_day.price / today.price - 1) AS daily_return
      FROM backtest
      JOIN prices AS today USING (ts)
      JOIN prices AS next_day ON next_day.ts = backtest.ts + INTERVAL 1 DAY
    )
    SELECT avg(daily_return) / stddev_samp(daily_return) * sqrt(365) AS sharpe FROM earned`)
  return row?.sharpe ?? Number.NaN
}

/** Finds the first line of a text that the other one lacks. */
function lineOnlyIn(text: string, other: string): string {
  const others = new Set(other.split('\n'))
  return (
    text
      .split('\n')
      .find((line) => !others.has(line))
      ?.trim() ?? ''
  )
}

function inWords(backtests: readonly Backtest[], keptPath: string | null): string {
  const width = Math.max(...backtests.map(({ name }) => name.length))
  const named = (name: string, text: string): string => `  ${name.padEnd(width)}   ${text}`
  const next = [
    ...(keptPath === null ? ([['pitlake demo --keep demo', 'keep this lake and both queries']] as const) : []),
    [
      `pitlake lookahead ${keptPath ?? 'demo'}/joined-on-t.sql --data ${keptPath ?? 'demo'}/lake`,
      'see the whole finding',
    ],
    ['pitlake init', 'begin with your own provider'],
  ] as const
  return [
    'Two backtests of one signal, on synthetic data. They differ in one line of SQL:',
    '',
    ...backtests.map(({ name, sharpe, line }) => named(name, `Sharpe ${sharpe.toFixed(2)}   ${line}`)),
    '',
    'Which one uses the future? pitlake lookahead runs each of them again without the data that came later:',
    '',
    ...backtests.map(({ name, proof }) => named(name, verdictText(proof))),
    '',
    'Next:',
    ...next.map(
      ([command, effect]) => `  ${command.padEnd(Math.max(...next.map(([text]) => text.length)))}   ${effect}`,
    ),
    '',
  ].join('\n')
}

/** Formats the verdict on a backtest, with the first row that differs if there is one. */
function verdictText({ verdict, differences, rows, cutoffs: runs }: LookaheadProof): string {
  const [first] = differences
  return first === undefined
    ? `${verdict}: none of ${rows} rows differs in ${runs} runs`
    : `${verdict}: ${leakSentence(first)}`
}
