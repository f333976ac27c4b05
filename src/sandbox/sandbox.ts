import {
  createScript,
  type Fault,
  type FaultEntry,
  faultTable,
  fraction,
  pick,
  strike,
  type FaultScript,
} from './faults.ts'
import {
  admitRequest,
  defaultLimits,
  httpDate,
  limitHeaders,
  retryAfterText,
  unused,
  type Admission,
  type ApiLimit,
  type SandboxLimits,
  type Usage,
} from './limits.ts'
import { answerMetrics, describedPath, type MetricsEnv } from './metrics.ts'
import { poison } from './body-faults.ts'
import { answerProvider, metadataName } from './provider/answers.ts'
import { namedProvider, type NamedProvider, type SandboxNames } from './provider/provider.ts'
import { answerRegistry, registryPrefix } from './registry/handler.ts'

/** Context for the answer of a fault. */
interface Scene {
  readonly side: 'metrics' | 'registry'
  readonly requestId: string
  /** The sandbox clock, Unix seconds. */
  readonly now: number
  /** Whether the caller accepts gzip. */
  readonly gzip: boolean
}

/** Returns the answer that a fault gives in place of the provider's own; undefined if all let the request pass. */
function insteadOf(faults: readonly Fault[], scene: Scene): Response | undefined {
  return faults.map((fault) => instead(fault, scene)).find((answer) => answer !== undefined)
}

function instead(fault: Fault, scene: Scene): Response | undefined {
  if (fault.kind === 'reset') return Response.error()
  if (fault.kind === 'no-content-204') return new Response(null, { status: 204 })
  if (fault.kind === 'empty-200') return new Response('', { headers: { 'content-type': 'application/json' } })
  if (fault.kind === 'empty-list') return new Response('[]', { headers: { 'content-type': 'application/json' } })
  if (fault.kind === 'html') {
    const page = '<!DOCTYPE html><html><head><title>Attention</title></head><body><h1>Please wait</h1></body></html>\n'
    return new Response(page, { status: fault.status ?? 200, headers: { 'content-type': 'text/html' } })
  }
  const { instead: answers }: FaultEntry = faultTable[fault.kind]
  if (answers === undefined) return undefined
  const [status, code, message] = answers
  const answer = refusalAnswer(scene, status, fault.code ?? code, message)
  const retry = fault.retry ?? (fault.kind === 'status-429' ? 1 : undefined)
  if (retry !== undefined) {
    answer.headers.set('retry-after', retryAfterText(fault.date === true ? 'date' : 'seconds', scene.now, retry))
  }
  return answer
}

/** Builds an error in the words of the API that was requested. */
function refusalAnswer(scene: Pick<Scene, 'side' | 'requestId'>, status: number, code: string, message: string) {
  if (scene.side === 'metrics') return Response.json({ error: message, code }, { status })
  return Response.json({ error: { code, message }, request_id: scene.requestId }, { status })
}

/** Cuts the body of the answer, in the order of the faults. */
async function disturb(response: Response, faults: readonly Fault[], scene: Scene): Promise<Response> {
  let answer = response
  for (const fault of faults) {
    if (answer.body === null) return answer
    if (fault.kind === 'cut-body') answer = await cut(answer, fault)
    else if (fault.kind === 'cut-gzip') {
      answer = scene.gzip
        ? await cutGzip(answer, fault)
        : await cut(answer, { ...fault, kind: 'cut-body', clean: true })
    }
  }
  return answer
}

/** Builds a response with `no-transform`, which keeps the port from compressing what is meant to arrive exactly so. */
function withBody(response: Response, body: BodyInit): Response {
  const headers = new Headers(response.headers)
  headers.set('cache-control', 'no-transform')
  return new Response(body, { status: response.status, headers })
}

/** Sends the first bytes of the body, then a broken connection, or with `clean` an end that looks like one. */
async function cut(response: Response, fault: Fault): Promise<Response> {
  const whole = new Uint8Array(await response.arrayBuffer())
  const truncated = whole.slice(0, Math.min(fault.bytes ?? Math.floor(whole.length / 2), Math.max(0, whole.length - 1)))
  const answer = withBody(response, fault.clean === true ? truncated : brokenAfter(truncated))
  if (fault.announce === true && fault.clean !== true) answer.headers.set('content-length', String(whole.length))
  return answer
}

async function cutGzip(response: Response, fault: Fault): Promise<Response> {
  if (response.body === null) return response
  const packed = response.body.pipeThrough(new CompressionStream('gzip'))
  const whole = new Uint8Array(await new Response(packed).arrayBuffer())
  const truncated = whole.slice(0, Math.min(fault.bytes ?? Math.floor(whole.length / 2), whole.length - 9))
  const answer = withBody(response, truncated)
  answer.headers.set('content-encoding', 'gzip')
  return answer
}

/** Streams the bytes, then an error: a port destroys the connection there. */
function brokenAfter(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let sent = bytes.length === 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (sent) controller.error(new Error('cut by a fault'))
        else controller.enqueue(bytes)
        sent = true
      },
    },
    { highWaterMark: 0 },
  )
}

/** One answered request, as tests count them; it contains no key. */
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

/** Options of a sandbox; all its answers follow from these and from the requests. */
export interface SandboxOptions extends Pick<MetricsEnv, 'catalogue' | 'seed' | 'metadata'> {
  /**
   * Names in use; `real`: it answers as a provider with names of its own, and no answer shows that it is a sandbox
   * (default `placeholder`).
   */
  readonly names?: SandboxNames
  /** Tier of the plan with real names, 1 to 3: paths of a higher tier are refused with 403 (default 2). */
  readonly tier?: number
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

/**
 * Creates a clock in Unix seconds that begins at `start` (null: the real time) and runs `speed` times as fast as `real`
 * (ms).
 */
export function runningClock(real: () => number, start: number | null, speed: number): () => number {
  const origin = real()
  const first = start ?? origin / 1000
  return () => first + ((real() - origin) / 1000) * speed
}

/** Sides of the sandbox. Metadata belong to the metrics API, but have a bucket of their own. */
type Side = 'metrics' | 'metadata' | 'registry'

/** A sandbox with the provider that it plays; `catalogue` has that provider's names. */
interface PlayedSandbox extends SandboxOptions {
  /** Absent with placeholder names. */
  readonly provider?: NamedProvider
}

interface State {
  readonly records: RequestRecord[]
  script: FaultScript
  readonly usage: Record<Side, Usage>
  count: number
}

/** The local provider: both APIs behind one handler. */
export interface Sandbox {
  /** Answers a request; `Response.error()` stands for a connection to be reset. */
  readonly handle: (request: Request) => Promise<Response>
  /** The latest requests (at most 100,000), oldest first. */
  readonly requests: () => readonly RequestRecord[]
  /** Replaces the faults from now on. */
  readonly setFaults: (faults: readonly Fault[]) => void
}

/** Makes a provider without files and sockets; it needs no closing. */
export function createSandbox(given: SandboxOptions): Sandbox {
  const options = given.names === 'real' ? playProvider(given) : given
  const script = (faults: readonly Fault[]): FaultScript => createScript(faults, options.seed, options.now())
  const state: State = {
    records: [],
    script: script(options.faults ?? []),
    usage: { metrics: unused, metadata: unused, registry: unused },
    count: 0,
  }
  return {
    handle: async (request: Request): Promise<Response> => await handle(request, options, state),
    requests: (): readonly RequestRecord[] => state.records,
    setFaults: (faults: readonly Fault[]): void => void (state.script = script(faults)),
  }
}

function playProvider(options: SandboxOptions): PlayedSandbox {
  const provider = namedProvider(options.catalogue, options.tier)
  return { ...options, catalogue: provider.catalogue, provider }
}

/** Finds the subject of the metadata at an address; undefined for every other address. */
function metadataAt(url: URL, { catalogue, provider }: PlayedSandbox): string | undefined {
  return provider === undefined ? describedPath(url, catalogue) : metadataName(url)
}

/** Finds the API at an address. */
function apiOf(url: URL, options: PlayedSandbox): Side | 'none' {
  const { catalogue, metadata } = options
  if (url.pathname.startsWith(catalogue.wire.metricsPrefix)) return 'metrics'
  if (metadataAt(url, options) !== undefined) return metadata === false ? 'none' : 'metadata'
  return url.pathname.startsWith(`${registryPrefix}/`) ? 'registry' : 'none'
}

async function handle(request: Request, options: PlayedSandbox, state: State): Promise<Response> {
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
  options: PlayedSandbox,
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
  const struck = strike(state.script, targetOf(url, asks, options, now))
  for (const fault of struck) struckNames.push(fault.kind)
  const slow = pick(struck, 'slow-first-byte')
  if (slow) await options.sleep(slow.ms ?? 2000, request.signal)
  const { setAt, faults } = state.script
  const epochStarts = faults.filter(({ kind }) => kind === 'new-epoch').map((fault) => fault.at ?? setAt)
  const reported = { ...options, faults: struck }
  const answer =
    insteadOf(struck, scene) ??
    (side === 'metrics'
      ? answerNamed(request, { ...reported, key: options.metricsKey })
      : answerRegistry(request, { ...reported, key: options.registryKey, epochStarts, requestId }))
  if (answer.type === 'error') return answer
  return finish(await spoiled(answer, struck, scene))
}

/** Answers for the metrics API under the names that this sandbox has. */
function answerNamed(request: Request, env: MetricsEnv): Response {
  return env.provider === undefined ? answerMetrics(request, env) : answerProvider(request, env.provider, env)
}

/** Applies the faults that work on the bytes of an answer. */
async function spoiled(answer: Response, struck: readonly Fault[], scene: Scene): Promise<Response> {
  const poisoning = answer.ok && answer.body !== null ? struck.find(poisons) : undefined
  const body = poisoning === undefined ? answer : await poison(answer, poisoning)
  return disturb(body, struck, scene)
}

/** Whether the fault replaces bytes of a good body. */
const poisons = (fault: Fault): boolean => fault.kind.startsWith('poison-')

function targetOf(url: URL, side: Side, options: PlayedSandbox, now: number) {
  const { metricsPrefix, queryKeys } = options.catalogue.wire
  const path = url.pathname
  const shortPath = {
    metrics: () => path.slice(metricsPrefix.length),
    metadata: () => `metadata/${metadataAt(url, options)}`,
    registry: () => `registry${path.slice(registryPrefix.length)}`,
  }[side]()
  const query = [...url.searchParams].filter(([name]) => !/key|token/i.test(name))
  const address = `${path}?${new URLSearchParams(query).toString()}`
  return { side, path, shortPath, address, asset: url.searchParams.get(queryKeys.asset), now }
}

/** Adds headers to every answer: the sandbox's name, unless it plays a provider with real names, and the time. */
function stamped(answer: Response, options: SandboxOptions, now: number): Response {
  if (options.names !== 'real') answer.headers.set('x-pitlake-sandbox', String(options.seed))
  answer.headers.set('date', httpDate(Math.floor(now)))
  return answer
}

function withLimits(answer: Response, limit: ApiLimit, verdict: Admission, scene: Scene) {
  for (const [name, value] of limitHeaders(limit, verdict, scene.now)) answer.headers.set(name, value)
  if (scene.side === 'registry') answer.headers.set('x-request-id', scene.requestId)
  return answer
}

/** Computes a version 4 UUID that depends on nothing but the text. */
function uuid(text: string): string {
  const words = [0, 1, 2, 3].map((n) =>
    Math.floor(fraction(`${text} ${n}`) * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  )
  const hex = words.join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
