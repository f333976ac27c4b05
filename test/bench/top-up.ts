import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { judged, type Measured, median, scaled } from './measured.ts'
import { download, fetchWith, type Took, type Wish } from './programs.ts'
import { benchConfig, type Provider, root, since, withDailyProvider } from './provider.ts'

/*
 * What comes every day: whole runs of `pitlake fetch`, start and views included, that bring one point to each of many
 * series. All ask the same provider on 127.0.0.1.
 */

const day = 86_400
/** Days that the first fetch brings. */
const history = scaled(1050)
/** The same for very many series, of which each is a request. */
const shortHistory = scaled(350)
const rounds = scaled(5)
/** Seconds of whole runs. */
const bounds = { few: 2, many: 8, tens: 1.5 }

const all = [...loadCatalogue().endpoints.values()]
/** What a provider can be asked without names of one's own. */
const free = all.filter(({ placeholders, exchanges }) => placeholders.length === 0 && exchanges.length === 0)
const pathsOf = (endpoints: typeof all, interval: '24h' | '10m'): string[] =>
  endpoints.filter(({ intervals }) => intervals.includes(interval)).map(({ path }) => path)

/** One provider, a folder for lakes, and the configuration of them all. */
interface Place {
  readonly provider: Provider
  readonly folder: string
  readonly config: string
}

/** Every daily job, one after the other. */
export async function benchTopUp(tell: (measured: readonly Measured[]) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-topup-'))
  const config = join(folder, 'pitlake.yaml')
  writeFileSync(config, benchConfig())
  try {
    await withDailyProvider(async (provider) => {
      const place = { provider, folder, config }
      for (const part of [fewSeries, manySeries, tenMinutes]) tell(part(place))
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const few: Omit<Wish, 'until'> = { paths: pathsOf(free, '24h'), assets: ['BTC', 'ETH'], interval: '24h' }
const fewCount = few.paths.length * few.assets.length
const until = (days: number): number => since + days * day

/** Top-ups of every endpoint that has days for two assets. */
function fewSeries({ provider, folder, config }: Place): Measured[] {
  const own = { folder: root, lake: join(folder, 'few') }
  const once = (days: number): Took => fetchWith(own, provider, config, { ...few, until: until(days) })
  once(history)
  const times = Array.from({ length: rounds }, (_, n) => {
    const run = once(history + n + 1)
    expectPoints(run, fewCount)
    return run
  })
  return [judged(`top-up of ${fewCount} series, one point each: ${timeOf(times)}`, wallOf(times), bounds.few, ' s')]
}

const wallOf = (runs: readonly Took[]): number => median(runs.map(({ wall }) => wall))
const processorOf = (runs: readonly Took[]): number => median(runs.map(({ cpu }) => cpu))

/** Whole runs in words: on the clock, and of the processors, which is the same on a busy machine. */
function timeOf(runs: readonly Took[]): string {
  return `${wallOf(runs).toFixed(2)} s (${processorOf(runs).toFixed(2)} s of processor)`
}

/**
 * Top-ups of every endpoint that takes a range for so many assets that these are 2,400 series or more. The bound is one
 * of the processor, which also tells what the requests cost; the plain download stands beside it.
 */
function manySeries({ provider, folder, config }: Place): Measured[] {
  const paths = all.filter((endpoint) => endpoint.since && endpoint.until).map(({ path }) => path)
  const assets = Array.from({ length: Math.ceil(scaled(2400) / paths.length) }, (_, n) => `A${n}`)
  const wish = { paths, assets, interval: '24h' } as const
  const own = { folder: root, lake: join(folder, 'many') }
  fetchWith(own, provider, config, { ...wish, until: until(shortHistory) })
  const times = Array.from({ length: rounds }, (_, n) => {
    const asked = { ...wish, until: until(shortHistory + n + 1) }
    const ours = fetchWith(own, provider, config, asked)
    expectPoints(ours, paths.length * assets.length)
    return { ours, bare: download(provider, { ...asked, since: asked.until - 6 * day }, 8) }
  })
  const mine = times.map(({ ours }) => ours)
  const bare = wallOf(times.map((time) => time.bare))
  const line = `top-up of ${paths.length * assets.length} series: ${timeOf(mine)}, plain download ${bare.toFixed(2)} s`
  return [judged(line, processorOf(mine), bounds.many, ' s of processor')]
}

/** Top-ups of forty series of ten minutes, one point each. */
function tenMinutes({ provider, folder, config }: Place): Measured[] {
  const wish = { paths: pathsOf(free, '10m').slice(0, 20), assets: ['BTC', 'ETH'], interval: '10m' } as const
  const own = { folder: root, lake: join(folder, 'tens') }
  fetchWith(own, provider, config, { ...wish, until: until(20) })
  const times = Array.from({ length: rounds }, (_, n) => {
    const run = fetchWith(own, provider, config, { ...wish, until: until(20) + (n + 1) * 600 })
    expectPoints(run, 40)
    return run
  })
  return [judged(`top-up of 40 series of 10m: ${timeOf(times)}`, wallOf(times), bounds.tens, ' s')]
}

function expectPoints({ stdout }: Took, points: number): void {
  const { points_added } = JSON.parse(stdout) as { points_added: number }
  if (points_added !== points) throw new Error(`${points_added} points instead of ${points}`)
}
