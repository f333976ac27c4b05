import { join } from 'node:path'
import { withCleanup } from '../../base/cleanup.ts'
import { type Complaint, usage } from '../../base/errors.ts'
import type { Settings } from '../../catalog/settings.ts'
import { callLater, type Asker, type AskEvent } from './ask.ts'
import { createHttp, type Http, type KeyHeader, type ProxySettings, type Reply } from './http.ts'
import type { Outcome } from './outcome.ts'
import { newReach, type Reach } from './reach.ts'
import { type RetryPolicy, usualRetries } from './retry.ts'
import { type Skew, watchSkew } from './skew.ts'
import type { Provider } from '../../lake/ledger/entry.ts'
import type { JobDeps, Run } from '../../lake/ledger/job.ts'
import { agreeProvider, providerAt } from '../../lake/ledger/provider.ts'
import { type AskOne, createRowAsker } from './request-rows.ts'
import { openRunLog, type RunLog } from '../../lake/ledger/run-facts.ts'
import { openSpool, type Spool } from '../../lake/ledger/spool-sweep.ts'
import { temporaryFolder } from '../../lake/store/files.ts'

/**
 * Time for requests under way to finish after an interrupt, in milliseconds; with the commit the run ends within ten
 * seconds.
 */
const interruptedMs = 6_000

/** One of the provider's APIs. */
export type ApiName = 'metrics' | 'registry'

/** The address of one API, and how connections to it are made. */
export interface Access {
  readonly name: ApiName
  readonly settings: Settings
  readonly keyHeader: KeyHeader
  readonly connections: number
  readonly maxBytes: number
}

/** The settings for requests to one API. */
export interface Api extends Access {
  /** Requests a minute until the provider's headers report a limit. */
  readonly perMinute: number
  /** Requests in all, repeats included; null: any number. */
  readonly maxRequests: number | null
  /** Whether the provider's address changed and the user confirmed it. */
  readonly providerMoved: boolean
  /** Policy for repeating requests; the usual one by default. */
  readonly retry?: RetryPolicy
  /** Reachability of the API, shared with other connections of the run; a new one by default. */
  readonly reach?: Reach
  /** Whether requests under way may finish after an interrupt. */
  readonly patient: boolean
}

/** The dependencies of a job that requests an API. */
export interface AskingDeps extends JobDeps {
  /** Returns the current time in milliseconds since 1970, from a clock that does not step back. */
  readonly now: () => number
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal
  readonly proxy: ProxySettings
  /** Whether the run's log records every step, not only requests, answers and commits. */
  readonly detailedLog?: boolean
}

/** Callbacks for events while a connection is open. */
export interface Listeners {
  readonly onAsk: (event: AskEvent) => void
  readonly onSkew: (skew: Skew) => void
  readonly onReply?: (reply: Reply) => void
}

/** An open connection to one API for one run, with the folder that its answers go to and the run's log. */
export interface Connection extends Pick<Asker, 'drain' | 'sent'> {
  readonly base: string
  readonly spool: Spool
  readonly log: RunLog
  readonly ask: AskOne
  /**
   * Creates a further asker at a different pace, for addresses with a limit of their own, whose refusals stop nothing
   * else.
   */
  readonly beside: (perMinute: number, retry: RetryPolicy) => AskOne
  /** Returns the provider under whose name answers are committed; null before the first answer. */
  readonly provider: () => Provider | null
  /** Returns the name of the sandbox in the first answer, null if it named none; undefined before that answer. */
  readonly sandbox: () => string | null | undefined
  /** Returns the reason, in words, why no further requests are sent; null while an answer is still possible. */
  readonly gaveUp: () => string | null
  /** Ends every request, so that none is repeated on a connection that is being closed. */
  readonly hangUp: () => Promise<void>
}

/** Returns the address and the key of an API; a missing one is an error of the command line. */
export function accessTo(
  name: ApiName,
  settings: Settings,
  next?: string,
): { readonly url: string; readonly key: string } {
  const { url, key } = settings[name]
  if (url !== null && key !== null) return { url, key }
  const missing = missingAccess(name, settings) ?? { subject: name }
  const advice = `set ${missing.subject}, or start \`pitlake sandbox\` and use what it prints`
  throw usage(missing.subject, { ...missing, next: next ?? advice })
}

/** Describes the first variable without which an API cannot be contacted; null if address and key are set. */
export function missingAccess(name: ApiName, settings: Settings): Complaint | null {
  const { url, key } = settings[name]
  if (url !== null && key !== null) return null
  const base = `the base address of the ${name} API${name === 'registry' ? ', with its version' : ''}`
  const { misnamedVariables } = settings
  return {
    subject: `PITLAKE_${name.toUpperCase()}_${url === null ? 'URL' : 'KEY'}`,
    expected: url === null ? base : `the key of the ${name} API`,
    got: misnamedVariables.length === 0 ? 'nothing' : `only ${misnamedVariables.join(' and ')}`,
  }
}

/** Opens the connections to an API; they must be closed. */
export function httpTo(
  { name, settings, keyHeader, connections, maxBytes }: Access,
  { program, proxy, now }: Pick<AskingDeps, 'program' | 'proxy' | 'now'>,
): Http {
  const { url: base, key } = accessTo(name, settings)
  const { secrets } = settings
  const userAgent = program.replace(' ', '/')
  const limits = { connections, maxBytes, smallestRate: settings[name].smallestRate }
  return createHttp({ base, key: { name: keyHeader, key }, secrets, userAgent, proxy, now, ...limits })
}

/** Connects a run with an API, and releases everything afterwards in any case. */
export async function withConnection<T>(
  run: Run,
  api: Api,
  deps: AskingDeps,
  listeners: Listeners,
  use: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { root } = run.ledger
  await using log = openRunLog(root, run.id, { now: deps.now, secrets: api.settings.secrets })
  try {
    const spool = await openSpool(root, run.id, deps)
    const http = httpTo(api, deps)
    const connection = connectionOf({ run, api, deps, listeners, log, spool, http })
    let forget = (): void => undefined
    const interrupted = (): void => {
      connection.drain()
      forget = callLater(interruptedMs, () => void connection.hangUp())
    }
    if (api.patient) deps.signal.addEventListener('abort', interrupted)
    if (api.patient && deps.signal.aborted) interrupted()
    return await withCleanup(
      async () => await use(connection),
      async () => {
        deps.signal.removeEventListener('abort', interrupted)
        forget()
        await connection.hangUp()
        await spool.close()
      },
    )
  } catch (error) {
    log.note('error', { message: error instanceof Error ? error.message : String(error) })
    throw error
  }
}

interface Parts {
  readonly run: Run
  readonly api: Api
  readonly deps: AskingDeps
  readonly listeners: Listeners
  readonly log: RunLog
  readonly spool: Spool
  readonly http: Http
}

/**
 * Longest wait on a further asker, in milliseconds; nothing depends on its answers, so users should not wait for them
 * long.
 */
const besideMs = 30_000

function connectionOf(parts: Parts): Connection {
  const { run, api, deps, listeners, log, spool, http } = parts
  const who: Who = { provider: null, sandbox: undefined }
  const reach = api.reach ?? newReach()
  const { now, wait: sleep, random, during } = deps
  const common = { http: { get: watched(parts) }, reach, now, sleep, random, during }
  const whose = { run: run.id, api: api.name }
  const asker = createRowAsker(
    {
      ...common,
      governor: { perMinute: api.perMinute },
      retry: api.retry ?? usualRetries,
      maxRequests: api.maxRequests,
      ...(!api.patient && { signal: deps.signal }),
      onEvent: (event) => {
        logAsking(log, event, deps.detailedLog ?? false)
        listeners.onAsk(event)
      },
    },
    whose,
  )
  const learning =
    (ask: AskOne): AskOne =>
    async (request, about) => {
      const answered = await ask(request, about)
      const sandbox = sandboxShownBy(answered.outcome)
      if (sandbox !== undefined) learn(parts, who, sandbox)
      return answered
    }
  let closed: Promise<void> | undefined
  return {
    base: accessTo(api.name, api.settings).url,
    spool,
    log,
    ask: async (request, about) => {
      const { pathname, search } = new URL(request.url)
      log.note('request', { id: request.id, ...about, path: pathname, query: search.slice(1) })
      return await learning(asker.ask)(request, about)
    },
    drain: asker.drain,
    sent: asker.sent,
    beside: (perMinute, retry) => {
      const brief: Reach = { ...reach, leftMs: (now) => Math.min(besideMs, reach.leftMs(now) ?? besideMs) }
      const unlimited = {
        ...common,
        reach: brief,
        governor: { perMinute },
        retry,
        maxRequests: null,
        signal: deps.signal,
      }
      return learning(createRowAsker(unlimited, whose).ask)
    },
    provider: () => who.provider ?? run.ledger.head().provider,
    sandbox: () => who.sandbox,
    gaveUp: reach.gaveUp,
    hangUp: async () => await (closed ??= http.close()),
  }
}

/** Judges the clocks by every answer. */
function watched({ run, deps, listeners, log, http }: Parts): Http['get'] {
  const judged = watchSkew({
    now: deps.now,
    nowMicros: deps.nowMicros,
    synthetic: () => run.ledger.head().provider?.synthetic,
    onSkew: (skew) => {
      log.note('skew', { ...skew })
      listeners.onSkew(skew)
    },
  })
  return async (request) => {
    const reply = judged(await http.get(request))
    listeners.onReply?.(reply)
    return reply
  }
}

interface Who {
  provider: Provider | null
  sandbox: string | null | undefined
}

/**
 * Returns the sandbox that an answer names, null for a real provider; undefined if the answer does not show who sent it.
 * Any server answers 404 to an address that it does not have, so a 404 must not make a wrong base address a provider.
 */
function sandboxShownBy(outcome: Outcome): string | null | undefined {
  if (!('sandbox' in outcome)) return undefined
  return outcome.kind === 'gone' ? (outcome.sandbox ?? undefined) : (outcome.sandbox ?? null)
}

/** Records the provider that answers; a provider other than the lake's is refused. */
function learn({ run, api }: Parts, who: Who, sandbox: string | null): void {
  if (who.provider !== null) return
  const found = providerAt(api.name, accessTo(api.name, api.settings).url, sandbox)
  who.provider = agreeProvider(run.ledger.head().provider, found, api.providerMoved)
  who.sandbox = sandbox
}

function logAsking(log: RunLog, event: AskEvent, detailed: boolean): void {
  const { id } = event
  if (event.kind === 'answered') {
    const { outcome, attempt, perMinute } = event
    const { kind, file: _file, at: _at, ...facts } = { file: null, at: null, ...outcome }
    const pace = detailed && { perMinute: Math.round(perMinute) }
    log.note('answer', { id, attempt, outcome: kind, ...facts, ...pace })
  } else if (detailed && event.kind === 'sent') log.note('sent', { id, attempt: event.attempt, sent: event.sent })
  else if (detailed && event.kind === 'waiting')
    log.note('waiting', { id, ms: Math.round(event.waitMs), why: event.why })
}

/** The dependencies of requests outside of a lake's runs. */
export interface BesideDeps extends Pick<AskingDeps, 'now' | 'wait' | 'random' | 'signal' | 'proxy' | 'program'> {
  /** A folder for temporary files. */
  readonly temporary: string
}

/** An asker whose bodies do not become part of a lake. */
export interface Beside {
  readonly ask: AskOne
  /** Requests sent so far, repeats included. */
  readonly sent: () => number
  readonly base: string
  /** Returns the path of a temporary file. */
  readonly file: (name: string) => string
}

/** The pace of such requests, the run to record them under, and the advice if no address or key is set. */
interface Manner {
  readonly perMinute: number
  readonly retry?: RetryPolicy
  readonly run?: string
  readonly next?: string
}

/** Requests an API for data that no lake stores; leaves nothing on the disk. */
export async function askBeside<T>(
  access: Access,
  deps: BesideDeps,
  { perMinute, retry = usualRetries, run = '', next }: Manner,
  use: (beside: Beside) => Promise<T>,
): Promise<T> {
  const { url: base } = accessTo(access.name, access.settings, next)
  await using folder = await temporaryFolder(deps.temporary)
  await using http = httpTo(access, deps)
  const { now, wait: sleep, random, signal } = deps
  const { ask, sent } = createRowAsker(
    { http, governor: { perMinute }, retry, maxRequests: null, now, sleep, random, signal },
    { run, api: access.name },
  )
  return await use({ ask, sent, base, file: (name) => join(folder.path, name) })
}
