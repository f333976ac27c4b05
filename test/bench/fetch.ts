import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { expand } from '../../src/catalog/series.ts'
import { createAsker } from '../../src/sources/http/ask.ts'
import type { Reply } from '../../src/sources/http/http.ts'
import { classify, type Outcome } from '../../src/sources/http/outcome.ts'
import { usualRetries } from '../../src/sources/http/retry.ts'
import { planOn } from '../../src/sources/metrics/prepare.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import type { CoverageRow, SeriesRow } from '../../src/lake/ledger/entry.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { horizonOf } from '../../src/sources/metrics/plan.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { withProvider } from '../helpers/provider.ts'
import { fixedWindow, type Limiter, slidingWindow, tokenBucket } from '../unit/limiters.ts'
import { type Measured, scaled } from './measured.ts'

const day = 86_400
const now = Date.UTC(2026, 0, 1, 12) / 1000
const minuteMs = 60_000
const catalogue = loadCatalogue()

/** Everything about a whole fetch: use of the limit, runs without news, planning, memory. */
export async function benchFetch(): Promise<Measured[]> {
  return [...(await utilisation()), await nothingNew(), await coveredPlan(), await memory()]
}

/** A clock on which time passes only while everybody waits. */
function virtualTime(start: number): {
  now: () => number
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  run: (work: Promise<unknown>) => Promise<void>
} {
  let at = start
  let waiting: { at: number; wake: () => void }[] = []
  return {
    now: () => at,
    sleep: async (ms, signal) => {
      if (signal?.aborted === true) return
      await new Promise<void>((wake) => {
        waiting.push({ at: at + ms, wake })
        signal?.addEventListener('abort', () => wake(), { once: true })
      })
    },
    run: async (work) => {
      let done = false
      const ended = work.finally(() => (done = true))
      while (!done) {
        await new Promise((resolve) => setImmediate(resolve))
        waiting = waiting.toSorted((a, b) => a.at - b.at)
        const next = waiting.shift()
        at = Math.max(at, next?.at ?? at)
        next?.wake()
      }
      await ended
    },
  }
}

/** The real asker and governor against three kinds of limiter: eight workers for ten minutes of virtual time. */
async function utilisation(): Promise<Measured[]> {
  const limit = 600
  const kinds: [string, Limiter][] = [
    ['fixed window', fixedWindow(limit, minuteMs, 'seconds', 20_000)],
    ['sliding window', slidingWindow(limit, minuteMs, 'unix', 'oldest')],
    ['token bucket', tokenBucket(limit, minuteMs, limit, 'seconds')],
    ['fixed window without headers', fixedWindow(limit, minuteMs, 'none')],
  ]
  const measured: Measured[] = []
  for (const [name, limiter] of kinds) {
    const { allowed, late } = await againstLimiter(limiter, limit, 11)
    const share = allowed / (limit * 10)
    const line = `asking against ${name} of ${limit} a minute: ${(share * 100).toFixed(1)} % used after the first minute, ${late} refusals (at least 98 %, 0)`
    measured.push({ line, within: share >= 0.98 && late === 0 })
  }
  return measured
}

async function againstLimiter(
  limiter: Limiter,
  perMinute: number,
  minutes: number,
): Promise<{ allowed: number; late: number }> {
  const start = 1_700_000_000_000
  const time = virtualTime(start)
  let allowed = 0
  let late = 0
  const get = async ({ file }: { file: string }): Promise<Reply> => {
    await time.sleep(80)
    const decision = limiter(time.now())
    const counts = time.now() - start >= minuteMs && time.now() - start < minutes * minuteMs
    if (counts && decision.allowed) allowed++
    if (counts && !decision.allowed) late++
    const at = time.now()
    await time.sleep(120)
    const headers = { ...decision.headers, date: new Date(at).toUTCString() }
    const status = decision.allowed ? 200 : 429
    const verdict = classify(status, headers, '[]', { at: time.now(), requestMs: 200, secrets: [], parameters: [] })
    const outcome: Outcome = verdict.kind === 'body' ? { ...verdict, file, bytes: 2 } : verdict
    return { outcome, status, headers }
  }
  const asker = createAsker({
    http: { get },
    governor: { perMinute },
    retry: usualRetries,
    maxRequests: null,
    now: time.now,
    sleep: time.sleep,
    random: () => 0.5,
  })
  const worker = async (): Promise<void> => {
    for (let i = 0; time.now() - start < minutes * minuteMs; i++)
      await asker.ask({ id: `x-${i}`, url: 'http://127.0.0.1/x', file: 'f' })
  }
  await time.run(Promise.all(Array.from({ length: 8 }, worker)))
  return { allowed, late }
}

/** A ledger in which every wanted window of every series is covered. */
async function coveredLake(root: string, assets: readonly string[], since: number): Promise<number> {
  const wanted = expand(catalogue, [{ assets, paths: ['*'] }])
  const series: SeriesRow[] = wanted.map(({ series: s }) => ({ ...s, settled: s.interval ?? '24h' }))
  const coverage: CoverageRow[] = wanted.map(({ series: s, endpoint }) => {
    const until = horizonOf(endpoint, s.interval ?? '24h', now).final
    return { series: s.id, since, until, state: 'covered', reason: null, asked_at: now, request: null }
  })
  const ledger = await Ledger.open(root)
  const provider = { metrics: 'sandbox:7', synthetic: true }
  await commit(ledger, { job: 'fetch', run: 'bench', provider, series, coverage }, commitDeps())
  ledger.close()
  return wanted.length
}

/** A fetch in which nothing can be new, over ten thousand series. */
async function nothingNew(): Promise<Measured> {
  const since = now - 400 * day
  const assets = Array.from({ length: 90 }, (_, i) => `A${i}`)
  let line = ''
  let within = false
  await withProvider(now, async (own) => {
    const series = await coveredLake(own.root, assets, since)
    const begun = performance.now()
    const done = await own.fetch({ assets, paths: ['*'], since })
    const seconds = (performance.now() - begun) / 1000
    line = `fetch of ${series} series without news: ${seconds.toFixed(2)} s, ${own.seen.length} requests (1 s, 0)`
    within = seconds < 1 && own.seen.length === 0 && done.requests === 0
  })
  return { line, within }
}

/** The whole plan of a hundred thousand covered series, the reading of their coverage included. */
async function coveredPlan(): Promise<Measured> {
  const since = now - 400 * day
  const assets = Array.from({ length: 900 }, (_, i) => `A${i}`)
  const root = mkdtempSync(join(tmpdir(), 'pitlake-bench-'))
  try {
    const series = await coveredLake(root, assets, since)
    const env = { PITLAKE_DATA: root }
    const settings = resolveSettings({ flags: {}, env, cwd: root })
    const ledger = await Ledger.open(root)
    const input = {
      settings,
      catalogue,
      selections: [{ assets, paths: ['*'], since }],
      gapsOnly: false,
      now: now + day,
    }
    const begun = performance.now()
    const made = await planOn(input, ledger)
    const seconds = (performance.now() - begun) / 1000
    ledger.close()
    const line = `plan of ${series} covered series, a day later: ${seconds.toFixed(2)} s, ${made.totals.requests} requests (2 s)`
    return { line, within: seconds < 2 }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** Peak memory of whole fetches, each in a process of its own: ten times the points must not take more. */
async function memory(): Promise<Measured> {
  let line = ''
  let within = false
  await withRig(now, async (rig) => {
    const small = await peakOf(rig.url, scaled(150) * day)
    const large = await peakOf(rig.url, scaled(1500) * day)
    const ratio = large.megabytes / small.megabytes
    const points = (count: number): string => `${count.toLocaleString('en-US')} points`
    line = `peak memory of a fetch of ${points(large.points)}: ${large.megabytes} MB, of ${points(small.points)}: ${small.megabytes} MB, ratio ${ratio.toFixed(2)} (1.3, 700 MB)`
    within = ratio <= 1.3 && large.megabytes < 700
  })
  return { line, within }
}

/** A fetch by the real command over this many seconds; the sandbox answers from this process meanwhile. */
async function peakOf(url: string, range: number): Promise<{ points: number; megabytes: number }> {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-bench-'))
  const until = now - 10 * day
  const selection = ['--assets', 'BTC', '--paths', 'blockchain/*,supply/*', '--intervals', '10m']
  const times = ['--since', String(until - range), '--until', String(until)]
  const env = { ...process.env, PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: root }
  const script = fileURLToPath(new URL('peak.ts', import.meta.url))
  try {
    const child = spawn(process.execPath, [script, 'fetch', '--json', ...selection, ...times], { env })
    let out = ''
    let err = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
    const code = await new Promise((resolve) => child.on('close', resolve))
    const parts = out.trimEnd().split('\n')
    if (code !== 0) throw new Error(err)
    const { megabytes } = JSON.parse(parts.at(-1) ?? '') as { megabytes: number }
    const { points_added } = JSON.parse(parts.slice(0, -1).join('\n')) as { points_added: number }
    return { points: points_added, megabytes }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
