import { tmpdir } from 'node:os'
import type { Selection } from '../../src/catalog/series.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { storedVersions } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { priceOf } from '../../src/sources/metrics/plan.ts'
import { jobsOn } from '../../src/maintenance/watch/jobs.ts'
import { watch } from '../../src/maintenance/watch/watch.ts'
import { depsAt, fetchKey, otherKey, type Rig } from './fetching.ts'
import { heldPoints } from './ledgers.ts'
import { catalogue } from './sandbox-client.ts'
import { computedByFormat } from './stored-twin.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import type { Row } from '../../src/lake/store/engine.ts'

/** A Tuesday, */
export const begin = Date.UTC(2026, 2, 10, 12) / 1000
/** from which on these are watched. */
export const daily = {
  assets: ['BTC', 'ETH'],
  paths: ['supply/current_pit', 'indicators/asol_pit', 'entities/active_count_pit'],
  intervals: ['24h'],
  since: begin - 60 * 86_400,
}
/** The same by the hour. */
export const hourly = {
  assets: ['BTC'],
  paths: ['addresses/active_count_pit'],
  intervals: ['1h'],
  since: begin - 20 * 86_400,
}

/** An instant as faults take it, to the second. */
export const instant = (at: number): string => new Date(at * 1000).toISOString().slice(0, 19).concat('Z')

/** Series and `t` of a line: a late point tells another `computed_at`, a rewritten one another value. */
export const keyOf = (line: string): string => line.split(' ').slice(0, 7).join(' ')

/** A watch whose clock is run by its own waiting. */
export interface Simulated {
  readonly selections: readonly Selection[]
  /** Until when, Unix seconds. */
  readonly until: number
  readonly registry?: boolean
  readonly creditsPerDay?: number | null
  /** Done at each wait, before the clock goes on; what it gives is how far the clock jumps beside, in seconds. */
  readonly onWait?: (now: number) => number | void
  readonly signal?: AbortSignal
  readonly data?: string
  /** By how many seconds the machine's clock is off when the provider's says so. */
  readonly skew?: (now: number) => number
}

/** Runs a watch on the rig until the instant; every wait, also of the jobs, only moves the clock. */
export async function simulate(rig: Pick<Rig, 'clock' | 'root' | 'url'>, how: Simulated) {
  const { clock, root, url } = rig
  const env = {
    PITLAKE_METRICS_URL: url,
    PITLAKE_METRICS_KEY: fetchKey,
    ...(how.registry === true && { PITLAKE_REGISTRY_URL: `${url}/registry/v1`, PITLAKE_REGISTRY_KEY: otherKey }),
    PITLAKE_DATA: how.data ?? root,
  }
  const settings = resolveSettings({ flags: {}, env, cwd: tmpdir() })
  const { metrics } = settings
  const stop = new AbortController()
  const signal = how.signal === undefined ? stop.signal : AbortSignal.any([how.signal, stop.signal])
  const moving = async (ms: number): Promise<void> => {
    clock.now += ms / 1000
    await Promise.resolve()
  }
  const own = (): number => clock.now + (how.skew?.(clock.now) ?? 0)
  const world = () => ({
    ...depsAt({ root, url, now: own }),
    wait: moving,
    signal,
    now: () => own() * 1000,
    temporary: tmpdir(),
  })
  const watches = { metrics: true, registry: how.registry === true }
  const jobs = jobsOn({ settings, catalogue, selections: how.selections, watches, publish: null }, world)
  const events: Parameters<Parameters<typeof watch>[2]['log']>[0][] = []
  const code = await watch(
    {
      weekStart: metrics.weekStart,
      price: ({ series }) => priceOf(metrics.credits, series.asset),
      creditsPerDay: how.creditsPerDay ?? null,
    },
    jobs,
    {
      now: () => own() * 1000,
      sleep: async (ms) => {
        const jump = how.onWait?.(clock.now) ?? 0
        await moving(ms + jump * 1000)
        if (clock.now >= how.until) stop.abort()
      },
      signal,
      log: (event) => void events.push(event),
    },
  )
  return { code, events }
}

/** A stored point with the instants that matter to a watch, Unix seconds. */
export interface Sighted extends Row {
  readonly metric: string
  readonly asset: string
  readonly interval: string
  readonly t: number
  readonly computed: number | null
  readonly observed: number
  /** When a fault let it appear, where one did. */
  readonly shown?: number | null
}

/** The series of a point as `pointRequests` names it. */
export const lineOf = ({ metric, asset, interval }: Sighted): string => `${metric} ${asset} ${interval}`

/** Every stored point from an instant of `t` on. */
export async function sightings(root: string, since: number): Promise<Sighted[]> {
  const clocks = `epoch(t)::BIGINT::DOUBLE AS t, epoch(${computedByFormat}) AS computed, epoch(observed_at) AS observed`
  const rows = await heldPoints<Sighted>(root, `metric, asset, interval, ${clocks}`)
  return rows.filter(({ t }) => t >= since)
}

/** The requests for points, with whose they are. */
export function pointRequests(rig: Rig): (ReturnType<Sandbox['requests']>[number] & { readonly series: string })[] {
  return rig.sandbox
    .requests()
    .filter(({ api, path }) => api === 'metrics' && !path.endsWith('/assets'))
    .map((record) => ({ ...record, series: seriesOf(record) }))
}

function seriesOf({ path, query }: ReturnType<Sandbox['requests']>[number]): string {
  return [path.slice('/v1/metrics/'.length), query['a'], query['i']].join(' ')
}

/** Instants of all commits, Unix seconds. */
export async function commitTimes(root: string): Promise<number[]> {
  using ledger = await Ledger.openToRead(root)
  return storedVersions(ledger).map(({ committed_at }) => committed_at / 1_000_000)
}
