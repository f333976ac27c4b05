import { type AskEvent, type Asker, createAsker } from '../net/ask.ts'
import { createHttp, type Http, type ProxySettings } from '../net/http.ts'
import { usualRetries } from '../net/retry.ts'
import { watchSkew } from '../net/skew.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import { diskError } from '../store/disk.ts'
import { Engine } from '../store/engine.ts'
import type { Provider } from '../ledger/entry.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { agreeProvider } from '../ledger/provider.ts'
import { openSpool, type Spool } from '../ledger/sweep.ts'
import { maxBodyBytes } from './asking.ts'
import { type Listed, refreshAssets } from './assets.ts'
import type { BatchResult } from './batch.ts'
import { type IngestEvent, logged } from './events.ts'
import type { RunEnd } from '../ledger/held-runs.ts'
import type { PlanInput } from './prepare.ts'
import { openRunLog, type RunLog } from '../ledger/run-log.ts'
import type { Tally } from './tally.ts'

/** What every job is told that asks for points. */
export interface BenchInput extends Pick<PlanInput, 'settings' | 'catalogue' | 'now'> {
  readonly maxRequests: number | null
  readonly providerMoved: boolean
}

/** What a fetch is told. */
export interface IngestInput extends PlanInput, BenchInput {}

/** What a fetch needs of the world. */
export interface IngestDeps extends CommitDeps {
  /** Milliseconds since 1970, from a clock that does not step back. */
  readonly now: () => number
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  /** Aborted by the first interrupt: what is in flight ends, then everything is committed. */
  readonly signal: AbortSignal
  readonly proxy: ProxySettings
  readonly onEvent: (event: IngestEvent) => void
  /** Whether the run's log holds every step, not only requests, answers and commits. */
  readonly detailedLog?: boolean
  /**
   * Runs once after the last commit, also after an early stop, while the job's lock is held and the ledger is open:
   * the place for whatever follows a fetch (merging, views).
   */
  readonly afterCommits?: (end: RunEnd) => Promise<void>
}

/** Requests a minute for the listing of assets, which stands in a bucket of its own. */
const listingPerMinute = 1_200

/** What sets a fetch apart from a verify. */
export interface Job {
  readonly name: 'fetch' | 'verify'
  /** The most credits that windows may cost; null: as many as the plan says. */
  readonly budget: number | null
  readonly onBatch: (done: BatchResult) => void
}

/** One job that asks for points, on one lake. */
export interface Bench {
  readonly job: Job
  readonly input: BenchInput
  readonly deps: IngestDeps
  readonly ledger: Ledger
  readonly url: string
  readonly key: string
  readonly run: string
  readonly tally: Tally
}

/** Everything that asking and converting need. */
export interface Tools {
  readonly bench: Bench
  readonly spool: Spool
  readonly engine: Engine
  readonly asker: Asker
  /** For the listing: its own limit and its own end. */
  readonly lister: Asker
  readonly attempts: Map<string, number>
  readonly tell: (event: IngestEvent) => void
  /** Who answers, once an answer has told. */
  readonly who: { provider: Provider | null; sandbox: string | null | undefined }
}

/** Opens the tools and closes them whatever happens. */
export async function withTools(bench: Bench, use: (tools: Tools) => Promise<void>): Promise<void> {
  const { input, deps, run } = bench
  const { secrets } = input.settings
  const log = openRunLog(input.settings.data, run, { now: deps.now, secrets })
  try {
    const spool = await openSpool(input.settings.data, run, deps)
    try {
      const engine = await Engine.open(':memory:', { lean: true, tempDirectory: spool.file('duckdb') })
      const http = httpOf(bench)
      try {
        await use(toolsOf(bench, log, { spool, engine, http }))
      } finally {
        // First of all, so that no request is tried again on what is being closed.
        await http.close()
        engine.close()
      }
    } finally {
      await spool.close()
    }
  } catch (error) {
    log.note('error', { message: error instanceof Error ? error.message : String(error) })
    throw diskError(error, bench.job.name)
  } finally {
    await log.close()
  }
}

function toolsOf(
  bench: Bench,
  log: RunLog,
  { spool, engine, http }: { spool: Spool; engine: Engine; http: Http },
): Tools {
  const { input, deps } = bench
  const attempts = new Map<string, number>()
  const tell = (event: IngestEvent): void => {
    if (event.kind === 'asking' && event.event.kind === 'sent') attempts.set(event.event.id, event.event.attempt)
    const line = logged(event, deps.detailedLog ?? false)
    if (line !== null) log.note(...line)
    deps.onEvent(event)
  }
  const synthetic = () => bench.ledger.head().provider?.synthetic
  const { now, nowMicros } = deps
  const watched = watchSkew({ now, nowMicros, synthetic, onSkew: (skew) => tell({ kind: 'skew', skew }) })
  const get: Http['get'] = async (request) => watched(await http.get(request))
  const common = { http: { get }, now: deps.now, sleep: deps.wait, random: deps.random }
  const onEvent = (event: AskEvent): void => tell({ kind: 'asking', event })
  const asker = createAsker({
    ...common,
    governor: { perMinute: input.settings.metrics.requestsPerMinute },
    retry: usualRetries,
    maxRequests: input.maxRequests,
    onEvent,
  })
  const lister = createAsker({
    ...common,
    governor: { perMinute: listingPerMinute },
    retry: { ...usualRetries, attempts: 3, limitedAttempts: 2 },
    maxRequests: null,
    signal: deps.signal,
  })
  return { bench, spool, engine, asker, lister, attempts, tell, who: { provider: null, sandbox: undefined } }
}

/** Asks and stores the listing of assets. */
export async function list(tools: Tools): Promise<Listed> {
  const { bench, spool, engine, lister, tell } = tools
  const { input, deps, ledger, run, url } = bench
  const { catalogue, providerMoved } = input
  const provider = (sandbox: string | null): Provider => learn(tools, sandbox)
  const listing = { ledger, engine, spool, asker: lister, run, base: url, catalogue, provider, providerMoved, deps }
  const listed = await refreshAssets(listing)
  tell({ kind: 'listing', assets: listed.assets, fresh: listed.fresh, outcome: listed.outcome.kind })
  if (listed.version) bench.tally.add({ version: listed.version, coverage: [], violations: [], accepted: [] })
  return listed
}

/** Remembers who answered; another provider than the lake's is refused. */
export function learn({ bench, who }: Tools, sandbox: string | null): Provider {
  who.provider ??= agreed(bench, sandbox)
  if (who.sandbox === undefined) who.sandbox = sandbox
  return who.provider
}

/** Under whose name answers are committed now; null while nobody has answered: silence gives a lake no name. */
export function named({ bench, who }: Tools): Provider | null {
  return who.provider ?? bench.ledger.head().provider
}

/** Who answers: the sandbox says so itself, everybody else is an address. */
function agreed({ input, ledger, url }: Bench, sandbox: string | null): Provider {
  const address = new URL(url)
  const metrics = sandbox === null ? `${address.origin}${address.pathname}`.replace(/\/+$/, '') : `sandbox:${sandbox}`
  return agreeProvider(ledger.head().provider, { metrics, synthetic: sandbox !== null }, input.providerMoved)
}

function httpOf({ input, deps, url, key }: Bench): Http {
  return createHttp({
    base: url,
    key: { name: 'X-Api-Key', key },
    secrets: input.settings.secrets,
    userAgent: deps.program.replace(' ', '/'),
    connections: input.settings.metrics.concurrency,
    maxBytes: maxBodyBytes,
    proxy: deps.proxy,
    now: deps.now,
  })
}
