import { type Fault, createScript, fraction, pick, type FaultScript, strike } from './faults.ts'
import {
  type ApiLimit,
  admitRequest,
  defaultLimits,
  httpDate,
  type SandboxLimits,
  limitHeaders,
  unused,
  type Admission,
} from './limits.ts'
import { answerMetrics, describedPath, type MetricsEnv } from './metrics.ts'
import { poison, poisons } from './body-faults.ts'
import { answerRegistry, registryPrefix } from './registry/handler.ts'
import { disturb, insteadOf, refusalAnswer, type Scene } from './transport.ts'

/** One answered request, as tests count them; it holds no key. */
export interface RequestRecord {
  readonly api: Side | 'none'
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** 0 for a connection that was reset. */
  readonly status: number
  /** The provider's clock, Unix seconds. */
  readonly at: number
  /** The faults that struck it. */
  readonly faults: readonly string[]
}

/** What a sandbox is made of; everything that it answers follows from this and from the requests. */
export interface SandboxOptions extends Pick<MetricsEnv, 'catalogue' | 'seed' | 'metadata'> {
  /** The provider's clock: Unix seconds, fractional. */
  readonly now: () => number
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly scale: 'demo' | 'full'
  readonly limits?: SandboxLimits
  readonly faults?: readonly Fault[]
  readonly metricsKey: string
  readonly registryKey: string
  /** The clock that the limits count by, in seconds from anywhere (default `now`). */
  readonly pace?: () => number
}

/** The local provider: both APIs behind one handler. */
export interface Sandbox {
  /** Answers a request; `Response.error()` stands for a connection to be reset. */
  handle(request: Request): Promise<Response>
  /** The latest requests (at most 100,000), oldest first. */
  requests(): readonly RequestRecord[]
  setFaults(faults: readonly Fault[]): void
}

/** A clock in Unix seconds that begins at `start` (null: the real time) and runs `speed` times as fast as `real` (ms). */
export function runningClock(real: () => number, start: number | null, speed: number): () => number {
  const origin = real()
  const first = start ?? origin / 1000
  return () => first + ((real() - origin) / 1000) * speed
}

/** Metadata belong to the metrics API, but have a bucket of their own. */
type Side = 'metrics' | 'metadata' | 'registry'

interface State {
  readonly records: RequestRecord[]
  script: FaultScript
  readonly usage: Record<Side, typeof unused>
  count: number
}

/** Makes a provider that holds no file and no socket; it needs no closing. */
export function createSandbox(options: SandboxOptions): Sandbox {
  const script = (faults: readonly Fault[]): FaultScript => createScript(faults, options.seed, options.now())
  const state: State = {
    records: [],
    script: script(options.faults ?? []),
    usage: { metrics: unused, metadata: unused, registry: unused },
    count: 0,
  }
  return {
    handle: async (request) => await handle(request, options, state),
    requests: () => state.records,
    setFaults: (faults) => void (state.script = script(faults)),
  }
}

/** What stands at an address. */
function apiOf(url: URL, { catalogue, metadata }: SandboxOptions): RequestRecord['api'] {
  if (url.pathname.startsWith(catalogue.wire.metricsPrefix)) return 'metrics'
  if (describedPath(url, catalogue) !== undefined) return metadata === false ? 'none' : 'metadata'
  return url.pathname.startsWith(`${registryPrefix}/`) ? 'registry' : 'none'
}

async function handle(request: Request, options: SandboxOptions, state: State): Promise<Response> {
  const url = new URL(request.url)
  const api = apiOf(url, options)
  const at = options.now()
  const faults: string[] = []
  const answer =
    api === 'none'
      ? stamped(Response.json({ error: 'not found' }, { status: 404 }), options, at)
      : await answerApi(request, url, api, options, state, faults)
  const query: Record<string, string> = {}
  for (const [name, value] of url.searchParams) if (!/key|token/i.test(name)) query[name] = value
  if (state.records.length >= 200_000) state.records.splice(0, 100_000)
  state.records.push({ api, method: request.method, path: url.pathname, query, status: answer.status, at, faults })
  return answer
}

async function answerApi(
  request: Request,
  url: URL,
  asks: Side,
  options: SandboxOptions,
  state: State,
  struckNames: string[],
): Promise<Response> {
  const now = options.now()
  const limit = (options.limits ?? defaultLimits)[asks]
  state.count++
  const requestId = uuid(`${options.seed} ${state.count}`)
  const side = asks === 'registry' ? asks : 'metrics'
  const { usage, verdict } = admitRequest(
    limit,
    state.usage[asks],
    (options.pace ?? options.now)(),
    url.pathname === `${registryPrefix}/snapshot`,
  )
  state.usage[asks] = usage
  const scene: Scene = {
    side,
    requestId,
    now,
    gzip: /\bgzip\b/.test(request.headers.get('accept-encoding') ?? ''),
  }
  const finish = (answer: Response) => withLimits(stamped(answer, options, now), limit, verdict, scene)
  if (verdict.refused !== null) {
    return finish(refusalAnswer(scene, 429, verdict.refused, verdict.refused.replaceAll('_', ' ')))
  }
  const struck = strike(state.script, asked(url, asks, options, now))
  for (const fault of struck) struckNames.push(fault.kind)
  const slow = pick(struck, 'slow-first-byte')
  if (slow) await options.sleep(slow.ms ?? 2000, request.signal)
  const { setAt, faults } = state.script
  const epochStarts = faults.filter(({ kind }) => kind === 'new-epoch').map((fault) => fault.at ?? setAt)
  const told = { ...options, faults: struck }
  const answer =
    insteadOf(struck, scene) ??
    (side === 'metrics'
      ? answerMetrics(request, { ...told, key: options.metricsKey })
      : answerRegistry(request, { ...told, key: options.registryKey, epochStarts, requestId }))
  if (answer.type === 'error') return answer
  return finish(await spoiled(answer, struck, scene))
}

/** The answer after the faults that work on its bytes. */
async function spoiled(answer: Response, struck: readonly Fault[], scene: Scene): Promise<Response> {
  const poisoning = answer.ok && answer.body !== null ? struck.find(poisons) : undefined
  const body = poisoning === undefined ? answer : await poison(answer, poisoning)
  return disturb(body, struck, scene)
}

function asked(url: URL, side: Side, options: SandboxOptions, now: number) {
  const { metricsPrefix, queryKeys } = options.catalogue.wire
  const path = url.pathname
  const shortPath = {
    metrics: () => path.slice(metricsPrefix.length),
    metadata: () => `metadata/${describedPath(url, options.catalogue)}`,
    registry: () => `registry${path.slice(registryPrefix.length)}`,
  }[side]()
  const query = [...url.searchParams].filter(([name]) => !/key|token/i.test(name))
  const address = `${path}?${new URLSearchParams(query).toString()}`
  return { side, path, shortPath, address, asset: url.searchParams.get(queryKeys.asset), now }
}

/** Says on every answer who speaks and when. */
function stamped(answer: Response, options: SandboxOptions, now: number): Response {
  answer.headers.set('x-pitlake-sandbox', String(options.seed))
  answer.headers.set('date', httpDate(Math.floor(now)))
  return answer
}

function withLimits(answer: Response, limit: ApiLimit, verdict: Admission, scene: Scene): Response {
  for (const [name, value] of limitHeaders(limit, verdict, scene.now)) answer.headers.set(name, value)
  if (scene.side === 'registry') answer.headers.set('x-request-id', scene.requestId)
  return answer
}

/** A version 4 UUID that depends on nothing but the text. */
function uuid(text: string): string {
  const words = [0, 1, 2, 3].map((n) =>
    Math.floor(fraction(`${text} ${n}`) * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  )
  const hex = words.join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
