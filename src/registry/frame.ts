import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Catalogue } from '../catalog/catalogue.ts'
import { type LakeError, usage } from '../errors.ts'
import { type AskEvent, createAsker } from '../net/ask.ts'
import { createHttp, type Http, type ProxySettings, type Reply } from '../net/http.ts'
import { header } from '../net/limits.ts'
import { describeOutcome, type Outcome } from '../net/outcome.ts'
import { changesAsk, type RegistryAsk, registryUrl } from './api.ts'
import { usualRetries } from '../net/retry.ts'
import { describeSkew, watchSkew } from '../net/skew.ts'
import { commit, type CommitDeps, noteRunFacts } from '../ledger/commit.ts'
import { diskError } from '../store/disk.ts'
import type { Provider, RequestRow } from '../ledger/entry.ts'
import { liveFiles } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { lockJob } from '../store/lock.ts'
import { agreeProvider } from '../ledger/provider.ts'
import { openSpool, type Spool, sweep } from '../ledger/sweep.ts'
import { readPage } from './bodies.ts'
import type { Settings } from '../config/settings.ts'
import type { RegistryAsking, Stopped } from './asking.ts'
import { quarantineBody } from '../store/quarantine.ts'
import { enginesOf, type WithEngine } from './engine.ts'
import { readRaw } from './raw.ts'
import { softDraft, softFacts, type SoftFacts } from './state.ts'
import type { RunEnd } from '../ledger/held-runs.ts'

/** What a registry job is told. */
export interface RegistryInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  /** A snapshot that loses much is applied all the same. */
  readonly acceptShrink: boolean
  readonly maxRequests: number | null
  readonly providerMoved: boolean
}

/** What a registry job needs of the world. */
export interface RegistryDeps extends CommitDeps {
  /** Milliseconds since 1970, from a clock that does not step back. */
  readonly now: () => number
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal
  readonly proxy: ProxySettings
  readonly onEvent: (event: RegistryEvent) => void
  /** Runs once after the last commit, while the job's lock is held and the ledger is open. */
  readonly afterCommits?: (end: RunEnd) => Promise<void>
}

/** What happens on the way, for progress. */
export type RegistryEvent =
  | { readonly kind: 'answered'; readonly ask: RegistryAsk; readonly outcome: Outcome }
  | { readonly kind: 'asking'; readonly event: AskEvent }
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'committed'; readonly version: number; readonly files: number }

/** An open lake and an open connection, for one run. */
export interface RegistryBench {
  readonly input: RegistryInput
  readonly deps: RegistryDeps
  readonly ledger: Ledger
  readonly withEngine: WithEngine
  readonly spool: Spool
  readonly asking: RegistryAsking
  readonly run: string
  readonly secrets: readonly string[]
  /** Who answers, as soon as somebody has. */
  readonly provider: () => Provider
  /** What the answers said beside their bodies. */
  readonly learnt: { limits: Record<string, string>; notModified: number; snapshotLimit: number | null }
}

/** The largest body that is kept. */
const maxBodyBytes = 400_000_000
/** Until the provider's headers say otherwise. */
const usualPerMinute = 120

/** Runs a registry job: one at a time on a lake, in a spool of its own, everything closed whatever happens. */
export async function withRegistry<T>(
  job: string,
  input: RegistryInput,
  deps: RegistryDeps,
  work: (bench: RegistryBench) => Promise<{ value: T; stopped: Stopped | null }>,
): Promise<T> {
  const { url, key } = input.settings.registry
  if (url === null) throw unset('PITLAKE_REGISTRY_URL', 'the base address of the registry API, with its version')
  if (key === null) throw unset('PITLAKE_REGISTRY_KEY', 'the key of the registry API')
  const lock = await lockJob(input.settings.data, 'registry', { ...deps.holder, since: deps.nowMicros() })
  try {
    const ledger = await Ledger.open(input.settings.data)
    try {
      await sweep(ledger, deps)
      const before = ledger.head().version
      const value = await inSpool(job, { input, deps, ledger, url, key }, work).catch((error: unknown) => {
        throw diskError(error, job)
      })
      await deps.afterCommits?.({ ledger, commits: ledger.head().version - before, requests: 1 })
      return value
    } finally {
      ledger.close()
    }
  } finally {
    await lock.release()
  }
}

/** Asks whether the feed has anything after a cursor; the lake is not touched. Cursors are opaque: none is compared. */
export async function readFeedAhead(
  input: RegistryInput,
  deps: RegistryDeps,
  cursor: string,
): Promise<{ kind: 'asked'; ahead: boolean } | Stopped> {
  const { url, key } = input.settings.registry
  const failed = (words: string): Stopped => ({ kind: 'stopped', by: 'failed', until: null, words })
  if (url === null || key === null) return failed('no address or no key is set')
  const folder = await mkdtemp(join(tmpdir(), 'pitlake-head-'))
  const http = httpOf({ input, deps, url, key })
  try {
    const file = join(folder, 'page.json')
    const { outcome } = await http.get({ url: registryUrl(url, changesAsk(cursor, null)), file, signal: deps.signal })
    if (outcome.kind !== 'body') return failed(describeOutcome(outcome))
    const page = readPage(await readFile(file), input.catalogue.resources)
    if (!page.ok) return failed(page.reason)
    return { kind: 'asked', ahead: page.value.hasMore || page.value.events.length > 0 }
  } finally {
    await http.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** The complaint about an address or key that is not set. */
function unset(name: string, what: string): LakeError {
  const next = `set ${name}, or start \`pitlake sandbox\` and use what it prints`
  return usage(name, { expected: what, got: 'nothing', next })
}

interface Opened {
  readonly input: RegistryInput
  readonly deps: RegistryDeps
  readonly ledger: Ledger
  readonly url: string
  readonly key: string
}

async function inSpool<T>(
  job: string,
  opened: Opened,
  work: (bench: RegistryBench) => Promise<{ value: T; stopped: Stopped | null }>,
): Promise<T> {
  const { deps, ledger, input } = opened
  const run = `${new Date(deps.now()).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()}-${deps.holder.pid}r`
  const began = { id: run, job, command: deps.holder.command, started_at: deps.nowMicros() }
  await noteRunFacts(ledger, began, deps.disk)
  const spool = await openSpool(input.settings.data, run, deps)
  const http = httpOf(opened)
  try {
    const bench = benchOf(opened, run, spool, http)
    const { value, stopped } = await work(bench)
    await noteSoft(bench, job)
    const facts = { id: run, ended_at: deps.nowMicros(), stopped_by: stopped?.by ?? null }
    await noteRunFacts(ledger, { ...facts, actual: { requests: bench.asking.requests.length } }, deps.disk)
    return value
  } finally {
    await http.close()
    await spool.close()
  }
}

function httpOf({ input, deps, url, key }: Pick<Opened, 'input' | 'deps' | 'url' | 'key'>): Http {
  return createHttp({
    base: url,
    key: { name: 'Authorization', key },
    secrets: input.settings.secrets,
    userAgent: deps.program.replace(' ', '/'),
    connections: 1,
    maxBytes: maxBodyBytes,
    proxy: deps.proxy,
    now: deps.now,
  })
}

function benchOf(opened: Opened, run: string, spool: Spool, http: Http): RegistryBench {
  const { input, deps, ledger, url } = opened
  const { secrets } = input.settings
  const learnt: RegistryBench['learnt'] = { limits: {}, notModified: 0, snapshotLimit: null }
  const watched = watchSkew(clocksOf(opened))
  const asker = createAsker({
    http: { get: async (request) => noteHead(watched(await http.get(request)), learnt) },
    governor: { perMinute: usualPerMinute },
    retry: usualRetries,
    maxRequests: input.maxRequests,
    now: deps.now,
    sleep: deps.wait,
    random: deps.random,
    signal: deps.signal,
    onEvent: (event) => deps.onEvent({ kind: 'asking', event }),
  })
  let provider: Provider | null = null
  const agree = (sandbox: string | null): Provider => agreed(opened, sandbox)
  const soft = softFacts(ledger)
  let asked = 0
  const raw = new Set(liveFiles(ledger, { table: 'raw' }).map((file) => file.path))
  const asking: RegistryAsking = {
    run,
    base: url,
    asker,
    spool,
    requests: [],
    nextId: () => `${run}-${String(++asked).padStart(6, '0')}`,
    held: (address) => {
      const tag = soft.tags[address]
      return tag && raw.has(tag.raw)
        ? { etag: tag.etag, read: async () => await readRaw(ledger.root, tag.raw) }
        : undefined
    },
    onOutcome: (ask, outcome) => {
      deps.onEvent({ kind: 'answered', ask, outcome })
      if (outcome.kind === 'not_modified') learnt.notModified++
      if (outcome.kind === 'limited' && outcome.code === 'snapshot_limit' && outcome.waitMs !== null)
        learnt.snapshotLimit = Math.ceil(deps.now() + outcome.waitMs)
      if (provider === null && 'sandbox' in outcome) provider = agree(outcome.sandbox)
    },
    quarantine: async (body, request, reason) => await quarantineBody(ledger.root, body, request, reason, secrets),
    now: deps.now,
  }
  return {
    input,
    deps,
    ledger,
    withEngine: enginesOf(spool),
    spool,
    asking,
    run,
    secrets,
    provider: () => provider ?? ledger.head().provider ?? agree(null),
    learnt,
  }
}

function clocksOf({ deps, ledger }: Opened): Parameters<typeof watchSkew>[0] {
  const { now, nowMicros, onEvent } = deps
  const synthetic = () => ledger.head().provider?.synthetic
  return { now, nowMicros, synthetic, onSkew: (skew) => onEvent({ kind: 'note', text: describeSkew(skew) }) }
}

const limitHeaders = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-quota-daily-limit',
  'x-quota-daily-remaining',
]

function noteHead(reply: Reply, learnt: RegistryBench['learnt']): Reply {
  for (const name of limitHeaders) {
    const value = header(reply.headers, name)
    if (value !== null && value.length < 100) learnt.limits[name] = value
  }
  return reply
}

/** Who answers: the sandbox says so itself, everybody else is an address. */
function agreed({ input, ledger, url }: Opened, sandbox: string | null): Provider {
  const address = new URL(url)
  const registry = sandbox === null ? `${address.origin}${address.pathname}`.replace(/\/+$/, '') : `sandbox:${sandbox}`
  return agreeProvider(ledger.head().provider, { registry, synthetic: sandbox !== null }, input.providerMoved)
}

/** What the run learnt beside the data: requests that no commit named, and limits. */
async function noteSoft(bench: RegistryBench, job: string): Promise<void> {
  const { ledger, deps, run, learnt, asking } = bench
  const before = softFacts(ledger)
  const facts: Partial<SoftFacts> = {
    limits: { ...before.limits, ...learnt.limits },
    notModified: before.notModified + learnt.notModified,
    ...(learnt.snapshotLimit !== null && { snapshotLimit: learnt.snapshotLimit }),
  }
  const provider = ledger.head().provider
  if (provider === null) return
  const requests: readonly RequestRow[] = asking.requests
  await commit(ledger, { job, run, provider, requests, soft: softDraft(facts) }, deps)
}
