import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { compareFigure, type ComparedFigure, comparedLine } from './compared.ts'
import { byTurns, scaled } from './measured.ts'
import { fetchWith, runScript, type Took, type Wish } from './programs.ts'
import { benchConfig, type Provider, root, withDailyProvider } from './provider.ts'

/*
 * Ten headline figures of this commit against another one, `BASE`: the same commands by turns, each a process of its
 * own, in processor seconds. Each side has its own checkout and its own lake, for the layout on disk may differ; the
 * results must be equal. A figure that got slower by more than a tenth fails the run.
 */

/** One of the two commits. */
interface Side {
  readonly name: 'base' | 'ours'
  /** Its checkout. */
  readonly folder: string
  /** Its lake. */
  readonly lake: string
}

/** What the figures share. */
interface Bench {
  readonly provider: Provider
  readonly home: string
  readonly config: string
}

/** Processor seconds of a run, and a text that must be the same on both sides. */
interface Run {
  readonly cpu: number
  readonly result: string
}

/** A figure: its name, and how one side runs it in a round. */
interface Headline {
  readonly name: string
  readonly run: (bench: Bench, side: Side, round: number) => Promise<Run>
}

const day = 86_400
const rounds = Math.max(2, scaled(7))
const assets = ['BTC', 'ETH']
/** Metrics without placeholders that have hourly and daily points. */
const paths = [...loadCatalogue().endpoints.values()]
  .filter(({ placeholders, exchanges, intervals }) => {
    const both = ['24h', '1h'].every((interval) => intervals.some((one) => one === interval))
    return placeholders.length + exchanges.length === 0 && both
  })
  .map(({ path }) => path)
  .slice(0, 20)
const [metric = ''] = paths
/** End of the first fetch, Unix seconds; the top-up adds the day after it, which is over. */
const until = (Math.floor(Date.now() / 1000 / day) - 2) * day
/** Start of the first fetch, Unix seconds. */
const since = until - Math.max(60, scaled(600)) * day
const wish: Wish = { paths, assets, interval: '24h,1h', since, until }

const instant = (at: number): string => new Date(at * 1000).toISOString()
/** SQL of how many rows a query of `decisions` has, one each `step` for each asset, and the sum of their values. */
const countedOf = (step: string, relation: string): string =>
  `WITH decisions AS (SELECT ts, unnest(${quoteList(assets)}) AS asset
     FROM calendar('${instant(since + 40 * day)}', '${instant(until)}', '${step}'))
   SELECT count(*) AS rows, count(v) AS known, sum(round(v * 100)::HUGEINT)::VARCHAR AS cents FROM ${relation}`

/** Figures in the order in which a lake is used. */
const headlines: readonly Headline[] = [
  {
    name: 'first fetch',
    run: async (bench, side, round) =>
      fetched(bench, { ...side, lake: join(bench.home, `${side.name}-first-${round}`) }, wish),
  },
  {
    name: 'top-up of a day',
    run: async (bench, side, round) => {
      const lake = join(bench.home, `${side.name}-later-${round}`)
      cpSync(side.lake, lake, { recursive: true })
      return fetched(bench, { ...side, lake }, { ...wish, until: until + day })
    },
  },
  {
    name: 'import of a million rows',
    run: async ({ home }, side, round) => {
      const lake = join(home, `${side.name}-import-${round}`)
      const flags = ['--as', 'x', '--value', 'value', '--available', 'end+5m', '--data', lake, '--json']
      const took = command(side, ['import', join(home, 'rows.parquet'), ...flags])
      rmSync(lake, { recursive: true })
      return { cpu: took.cpu, result: String((JSON.parse(took.stdout) as Record<string, unknown>)['points_added']) }
    },
  },
  { name: "sql 'SELECT 1'", run: queried('SELECT 1 AS one') },
  { name: 'pit_join', run: queried(countedOf('5 minutes', `pit_join('decisions', ${quote(metric)}, '1h')`)) },
  {
    name: 'pit_long of 20 metrics',
    run: queried(countedOf('1 hour', `pit_long('decisions', [${paths.map(quote).join(', ')}], '1h')`)),
  },
  { name: 'resample to days', run: queried(countedOf('1 day', `resample(${quote(metric)}, '1h', '24h', 'sum')`)) },
  {
    name: 'panel of 20 metrics',
    run: async ({ home }, side) => {
      const out = join(home, `${side.name}.parquet`)
      const calendar = `${instant(since + 40 * day)},${instant(until)},1h`
      const wanted = ['--assets', assets.join(','), '--metrics', paths.join(','), '--interval', '24h']
      const { cpu } = command(side, ['panel', '--calendar', calendar, ...wanted, '--out', out, '--data', side.lake])
      using engine = await Engine.open()
      const [row] = await engine.rows<{ digest: string }>(
        `SELECT concat_ws(' ', count(*), sum(hash(panel))) AS digest FROM read_parquet(${quote(out)}) AS panel`,
      )
      return { cpu, result: row?.digest ?? '' }
    },
  },
  { name: 'status', run: async (_, side) => ({ ...command(side, ['status', '--data', side.lake]), result: '' }) },
  {
    name: 'lookahead of a leak',
    run: async ({ home }, side) => {
      const { cpu, stdout } = command(side, ['lookahead', join(home, 'leak.sql'), '--json', '--data', side.lake], 4)
      return { cpu, result: String((JSON.parse(stdout) as Record<string, unknown>)['verdict']) }
    },
  },
]

const leak = `SELECT c.ts, p.asset, p.v
FROM calendar('${instant(since + 40 * day)}', '${instant(until)}', '1 day') AS c
JOIN points AS p ON p.t = c.ts
WHERE p.metric = ${quote(metric)} AND p."interval" = '24h' AND p.asset = 'BTC'
`

function command({ folder }: Side, argv: readonly string[], code = 0): Took {
  return runScript(folder, ['src/main.ts', ...argv], {}, { code })
}

function queried(sql: string): Headline['run'] {
  return async (_, side) => {
    const { cpu, stdout } = command(side, ['sql', sql, '--format', 'json', '--data', side.lake])
    return { cpu, result: stdout }
  }
}

function fetched({ provider, config }: Bench, side: Side, wanted: Wish): Run {
  const { cpu, stdout } = fetchWith(side, provider, config, wanted)
  rmSync(side.lake, { recursive: true })
  return { cpu, result: String((JSON.parse(stdout) as Record<string, unknown>)['points_added']) }
}

/** Checks a commit out into a folder, with the packages that its lockfile names. */
function checkOut(commit: string, folder: string): string {
  const run = (program: string, args: readonly string[], cwd: string): string => {
    const done = spawnSync(program, args, { cwd, encoding: 'utf8' })
    if (done.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${done.stderr}`)
    return done.stdout.trim()
  }
  const id = run('git', ['rev-parse', '--verify', `${commit}^{commit}`], root)
  run('git', ['clone', '--quiet', '--shared', '--no-checkout', root, folder], root)
  run('git', ['checkout', '--quiet', '--detach', id], folder)
  const lockOf = (checkout: string): string => readFileSync(join(checkout, 'package-lock.json'), 'utf8')
  if (lockOf(folder) === lockOf(root)) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  else run('npm', ['ci', '--ignore-scripts'], folder)
  return id
}

/** Measures a figure by turns; fails unless the results of both sides are equal. */
async function compare(bench: Bench, sides: readonly Side[], { name, run }: Headline): Promise<ComparedFigure> {
  const seconds = { base: [] as number[], ours: [] as number[] }
  for (let round = -1; round < rounds; round++) {
    const runs = await byTurns(
      round,
      sides.map((side) => async () => await run(bench, side, round)),
    )
    const results = new Set(runs.map(({ result }) => result))
    if (results.size > 1) throw new Error(`${name}: the results differ: ${[...results].join(' and ')}`)
    for (const [n, side] of sides.entries()) if (round >= 0) seconds[side.name].push(runs[n]?.cpu ?? Number.NaN)
  }
  return { name, ...seconds }
}

async function main(base: string): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'pitlake-compare-'))
  const config = join(home, 'pitlake.yaml')
  writeFileSync(config, benchConfig())
  writeFileSync(join(home, 'leak.sql'), leak)
  try {
    const folder = join(home, 'base')
    const id = checkOut(base, folder)
    console.log(`against ${id.slice(0, 8)}: ${rounds} rounds by turns, processor seconds, equal results`)
    using engine = await Engine.open()
    await engine.run(
      `COPY (SELECT 'A' || a AS asset, make_timestamptz((1400000400 + h * 3600)::BIGINT * 1000000) AS t, hash(a, h) / 1e15 AS value
       FROM range(${scaled(10_000)}) AS hours (h) CROSS JOIN range(100) AS names (a) ORDER BY h, a)
       TO ${quote(join(home, 'rows.parquet'))} (FORMAT parquet)`,
    )
    await withDailyProvider(async (provider) => {
      const bench = { provider, home, config }
      const sides: readonly Side[] = [
        { name: 'base', folder, lake: join(home, 'lake-base') },
        { name: 'ours', folder: root, lake: join(home, 'lake-ours') },
      ]
      for (const side of sides) fetchWith(side, provider, config, wish)
      for (const headline of headlines) {
        const figure = await compare(bench, sides, headline)
        console.log(comparedLine(figure))
        if (compareFigure(figure).slower) process.exitCode = 1
      }
    })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const commit = process.env['BASE'] ?? process.argv[2]
if (commit === undefined || commit === '') {
  console.error('make bench-compare: expected BASE, a commit to compare with; make bench-compare BASE=HEAD~1')
  process.exitCode = 2
} else await main(commit)
