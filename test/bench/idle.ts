import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { expand } from '../../src/catalog/series.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { commit, type CommitDeps, type Draft } from '../../src/lake/ledger/commit.ts'
import type { CoverageRow, SeriesRow } from '../../src/lake/ledger/entry.ts'
import { foldJournal } from '../../src/lake/ledger/checkpoint-writer.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { horizonOf } from '../../src/sources/metrics/plan.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { judged, type Measured, median, scaled } from './measured.ts'
import { runScript } from './programs.ts'
import { benchConfig, root, withDailyProvider } from './provider.ts'

/*
 * A lake of ten thousand series and five thousand versions, each of which brought something, opened by a whole
 * `pitlake fetch` that finds nothing to do.
 */

const versions = scaled(5000)
const rounds = scaled(5)
/** Processor seconds, start included. */
const bound = 1
const catalogue = loadCatalogue()
const assets = Array.from({ length: 95 }, (_, n) => `A${n}`)
const since = Date.UTC(2025, 0, 1) / 1000

/** Processor seconds of a fetch without news. */
export async function benchIdle(): Promise<Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-idle-'))
  try {
    const lake = join(folder, 'lake')
    return await withDailyProvider(async ({ url }) => {
      const config = join(folder, 'pitlake.yaml')
      writeFileSync(config, benchConfig())
      const series = await longLived(lake, url)
      const selected = ['--paths', '*', '--assets', assets.join(','), '--since', new Date(since * 1000).toISOString()]
      const args = ['src/main.ts', 'fetch', '--json', '--config', config, '--data', lake, ...selected]
      const env = { PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: 'key-of-the-bench' }
      // The first asks what the provider says of its paths, and makes the views.
      runScript(root, args, env)
      const times = Array.from({ length: rounds }, () => {
        const { cpu, stdout } = runScript(root, args, env)
        const { requests, version } = JSON.parse(stdout) as { requests: number; version: number }
        if (requests > 0 || version < versions) throw new Error(`${requests} requests, version ${version}`)
        return cpu
      })
      const line = `fetch without news, ${series} series, ${versions} versions: ${median(times).toFixed(2)} s of processor`
      return [judged(line, median(times), bound, ' s')]
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Makes the lake; gives how many series it holds. */
async function longLived(lake: string, metrics: string): Promise<number> {
  const now = Date.now() / 1000
  const wanted = expand(catalogue, [{ assets, paths: ['*'] }])
  const series: SeriesRow[] = wanted.map(({ series: own }) => ({ ...own, settled: own.interval ?? '24h' }))
  const end = wanted.map(({ series: own, endpoint }) => horizonOf(endpoint, own.interval ?? '24h', now).final)
  const state = { state: 'covered', reason: null, asked_at: since, request: null } as const
  const coverage: CoverageRow[] = series.map(({ id }, n) => ({
    series: id,
    since,
    until: (end[n] ?? 0) - versions,
    ...state,
  }))
  // What is made by the thousand is not forced to the disk.
  const deps: CommitDeps = { ...commitDeps(), disk: { ...realDisk, sync: nothing, syncFolder: nothing } }
  const draft = (more: Partial<Draft>): Draft => ({
    job: 'fetch',
    run: 'bench',
    provider: { metrics, synthetic: false },
    ...more,
  })
  using ledger = await Ledger.open(lake)
  await commit(ledger, draft({ series, coverage }), deps)
  for (let n = 1; n < versions; n++) {
    const at = (n * 7919) % series.length
    const until = (end[at] ?? 0) - versions + n
    await commit(ledger, draft({ coverage: [{ series: series[at]?.id ?? '', since, until, ...state }] }), deps)
    if (n % 128 === 0) await foldJournal(ledger, deps)
  }
  await commit(
    ledger,
    draft({ coverage: series.map(({ id }, n) => ({ series: id, since, until: end[n] ?? 0, ...state })) }),
    deps,
  )
  return series.length
}

async function nothing(): Promise<void> {
  await Promise.resolve()
}
