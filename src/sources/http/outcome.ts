import { jsonOf } from '../../base/json.ts'
import { redact, withoutHalfKey } from '../../base/secrets.ts'
import { formatInstant, type Instant, instantOf } from '../../base/time.ts'
import { ageOf, dateOf, header, type Headers, readLimits } from './governor.ts'

/** The facts of every answer: its time, its duration, and the few headers that later stages use. */
type Answer = {
  readonly status: number
  /** Time at which the answer's headers were read, in milliseconds since 1970 by the local clock. */
  readonly at: number
  /** The provider's `Date`, in whole seconds; null if it sent none. */
  readonly date: Instant | null
  /** Time that the answer spent in caches (`Age`), in seconds; 0 if not reported. */
  readonly age: number
  /** Time from sending the request to the end of the body. */
  readonly requestMs: number
  readonly etag: string | null
  readonly requestId: string | null
  /** The `x-pitlake-sandbox` header: which synthetic world answered; null for a real provider. */
  readonly sandbox: string | null
}

/** The provider's own words: at most 300 characters, secrets replaced; and its machine-readable code. */
type Words = {
  readonly words: string
  readonly code: string | null
}

/** Reason for which a request is worth repeating. */
export type AgainReason = 'status' | 'connect' | 'reset' | 'timeout' | 'cut' | 'protocol'

/** Reason for which a body is useless: it begins as markup does, or is JSON without any content. */
export type UselessReason = 'a page' | 'nothing'

/** An answer whose body is stored in `file`; `bytes` after decompression. `vain` if the body is of no use. */
export type BodyOutcome = {
  readonly kind: 'body'
  readonly file: string
  readonly bytes: number
  readonly vain?: UselessReason
} & Answer

/** 204. */
export type NoContentOutcome = { readonly kind: 'no_content' } & Answer

/** A denied request: 403 (`forbidden`), or 404 and 410 (`gone`). */
export type DeniedOutcome = { readonly kind: 'forbidden' | 'gone' } & Answer & Words

/**
 * Reason for which an answer is too large: its status (413, 414, 504), the byte limit, or a compressed body that would
 * fill the disk.
 */
export type TooLargeReason = 'status' | 'ceiling' | 'bomb'

/** The outcome of one request. The union is closed: code that handles it must handle each kind. */
export type Outcome =
  | BodyOutcome
  | NoContentOutcome
  | ({ readonly kind: 'not_modified' } & Answer)
  | ({ readonly kind: 'unauthorised' } & Answer & Words)
  | ({ readonly kind: 'forbidden' } & Answer & Words)
  | ({ readonly kind: 'gone' } & Answer & Words)
  /** 400 or 422; `parameter` is the canonical name of the query parameter that the words name, if any. */
  | ({ readonly kind: 'refused'; readonly parameter: string | null } & Answer & Words)
  /**
   * An answer that is too large: 413, 414, 504, or a body beyond the byte limit (`by`). A smaller request may succeed,
   * unless the body is a bomb.
   */
  | ({ readonly kind: 'too_large'; readonly by: TooLargeReason } & Answer & Words)
  /** A 429; `waitMs` is the wait that the provider demands, never shortened; null if it names none. */
  | ({ readonly kind: 'limited'; readonly waitMs: number | null } & Answer & Words)
  /** A spent quota or a very long wait: nothing more is sent before `until` (milliseconds since 1970). */
  | { readonly kind: 'parked'; readonly until: number; readonly words: string; readonly sandbox?: string | null }
  | {
      readonly kind: 'again'
      readonly reason: AgainReason
      readonly status: number | null
      /** The provider's own name of the request, if it gave one. */
      readonly requestId?: string | null
      /** Minimum wait before the next try, as the provider demands it; null if it names none. */
      readonly waitMs: number | null
      readonly words: string
      readonly requestMs: number
    }
  /** A status that this program cannot use; a redirect includes a description of its target. */
  | ({ readonly kind: 'unexpected'; readonly location: string | null } & Answer & Words)
  /**
   * A request that was not sent, or was abandoned: by the caller's signal, because the run may send no more requests,
   * or because the provider does not answer.
   */
  | { readonly kind: 'stopped'; readonly by: 'signal' | 'max_requests' }
  | { readonly kind: 'stopped'; readonly by: 'unreachable'; readonly words: string }

/** A query parameter: the name this program uses and the key it has on the wire. */
export interface QueryParameter {
  readonly name: string
  readonly key: string
}

/** The facts that `classify` needs in addition to the answer itself. */
export interface AnswerContext {
  /** Time at which the answer's headers were read, milliseconds since 1970. */
  readonly at: number
  /** Milliseconds since the request was sent. */
  readonly requestMs: number
  /** Texts to replace in the provider's words. */
  readonly secrets: readonly string[]
  /** Parameters that a refusal may name. */
  readonly parameters: readonly QueryParameter[]
}

/** The outcome of an answer before its body is stored; the caller adds `file` and `bytes` to a `body`. */
type Verdict = Exclude<Outcome, { kind: 'body' }> | ({ readonly kind: 'body' } & Answer)

/** Decides on the status alone; `start` is the beginning of the body and only supplies the words. */
export function classify(status: number, headers: Headers, start: string, context: AnswerContext): Verdict {
  const answer = answerOf(status, headers, start, context)
  const words = { words: wordsOf(start, context.secrets), code: codeOf(start, context.secrets) }
  switch (status) {
    case 200:
    case 203:
      return { kind: 'body', ...answer }
    case 204:
      return { kind: 'no_content', ...answer }
    case 304:
      return { kind: 'not_modified', ...answer }
    case 400:
    case 422:
      return { kind: 'refused', parameter: namedParameter(words.words, context.parameters), ...answer, ...words }
    case 401:
      return { kind: 'unauthorised', ...answer, ...words }
    case 403:
      return { kind: 'forbidden', ...answer, ...words }
    case 404:
    case 410:
      return { kind: 'gone', ...answer, ...words }
    case 413:
    case 414:
    case 504:
      return { kind: 'too_large', by: 'status', ...answer, ...words }
    case 429:
      return { kind: 'limited', waitMs: readLimits(headers, context.at).retryAfterMs, ...answer, ...words }
    default:
      if (status === 408 || status === 425 || status >= 500) {
        const waitMs = readLimits(headers, context.at).retryAfterMs
        const { requestMs, requestId } = answer
        return { kind: 'again', reason: 'status', status, waitMs, words: words.words, requestMs, requestId }
      }
      return { kind: 'unexpected', location: locationOf(headers), ...answer, ...words }
  }
}

/** Builds the part of an outcome that every answer has; `start` is the beginning of its body. */
function answerOf(status: number, headers: Headers, start: string, context: AnswerContext): Answer {
  const date = dateOf(headers)
  const clean = (name: string): string | null => {
    const value = header(headers, name)
    return value === null ? null : redact(value, context.secrets)
  }
  return {
    status,
    at: context.at,
    date: date === null ? null : Math.floor(date / 1000),
    age: ageOf(headers),
    requestMs: context.requestMs,
    etag: clean('etag'),
    requestId: requestIdOf(headers, start, context.secrets),
    sandbox: clean('x-pitlake-sandbox'),
  }
}

/** Returns the provider's clock for the answer's request row. */
export function clockOf(outcome: Outcome): { provider_date?: Instant } {
  return 'date' in outcome && outcome.date !== null ? { provider_date: outcome.date } : {}
}

/** Number of bytes of an error body that are read. */
export const startBytes = 16_384
const shownCharacters = 300
/** Shortens a text to at most 300 characters on one line, after replacing secrets. */
export function wordsOf(text: string, secrets: readonly string[]): string {
  const line = withoutHalfKey(redact(text, secrets), secrets)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
  return Array.from(line.slice(0, shownCharacters * 2))
    .slice(0, shownCharacters)
    .join('')
}

/** Reads the error code of a JSON body: `code` at top level, under `error`, or in `errors[0]`. */
function codeOf(text: string, secrets: readonly string[]): string | null {
  const code = stringIn(text, [['code'], ['error', 'code'], ['errors', '0', 'code'], ['error']], /^[\w.-]{1,64}$/)
  return code === null ? null : redact(code, secrets)
}

/** Returns the first of these members of a JSON body whose text matches; null if there is none. */
function stringIn(text: string, paths: readonly (readonly string[])[], shape: RegExp): string | null {
  const body = jsonOf(text)
  const found = paths.map((path) => path.reduce<unknown>(member, body))
  return found.find((value): value is string => typeof value === 'string' && shape.test(value)) ?? null
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

/**
 * Finds the parameter that a refusal names: by its own name as a word, or by its key in quotes, before `=`, or after a
 * word such as "parameter"; quotes may be escaped as in JSON. A bare `a` or `i` in a sentence names nothing.
 */
export function namedParameter(words: string, parameters: readonly QueryParameter[]): string | null {
  const lead = '(?:param(?:eter)?s?|query|field|argument|key)[\\s:]+'
  for (const { name, key } of parameters) {
    const exact = escape(key)
    const quoted = new RegExp(`["'\`]${exact}\\\\?["'\`]|\\b${lead}${exact}(?![\\w-])|[?&\\s]${exact}=`)
    if (quoted.test(` ${words}`)) return name
  }
  for (const { name } of parameters) {
    const spelt = escape(name).replaceAll('_', '[_ -]?')
    if (new RegExp(`(?<![\\w-])${spelt}(?![\\w-])`, 'i').test(words)) return name
  }
  return null
}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Describes the target of a redirect without host, credentials and query, which may contain a key. */
function locationOf(headers: Headers): string | null {
  const location = header(headers, 'location')
  if (location === null) return null
  const elsewhere = /^(?:[a-z][a-z0-9+.-]*:)?[\\/]{2}/i.test(location)
  return elsewhere ? 'another address' : 'another path of the same host'
}

const largeWords: Partial<Record<TooLargeReason, string>> = {
  ceiling: 'the body is larger than the ceiling',
  bomb: 'a compressed body that would fill the disk',
}

/** Describes an answer without a usable body for its request row, with the id for questions to the provider. */
export const describeFailure = (outcome: Outcome): string => `${describeOutcome(outcome)}${requestIdWords(outcome)}`

/** Formats the provider's own name of the request as the end of a sentence; empty if it gave none. */
export function requestIdWords(outcome: Outcome): string {
  const id = 'requestId' in outcome ? outcome.requestId : null
  return id ? ` (request id ${id})` : ''
}

const idHeaders = ['x-request-id', 'request-id', 'x-amzn-requestid', 'x-correlation-id', 'cf-ray'] as const
const idKeys = [['request_id'], ['requestId'], ['error', 'request_id'], ['error', 'requestId']] as const

/**
 * Finds the provider's own name of the request, for questions to its support: in a header, otherwise in the body of a
 * refusal.
 */
function requestIdOf(headers: Headers, start: string, secrets: readonly string[]): string | null {
  const named = idHeaders.map((name) => header(headers, name)).find((value) => value !== null)
  const requestName = named ?? stringIn(start, idKeys, /^[\w.:/+=-]{1,128}$/)
  return requestName === null || requestName === undefined ? null : wordsOf(requestName, secrets)
}

/** Returns the advice after an early stop; `resumeAt` is the time at which a spent quota is renewed. */
export function resumeHint(resumeAt: string | null): string {
  if (resumeAt === null) return 'run the same command again'
  return `the quota is back at ${formatInstant(Math.ceil(instantOf(resumeAt)))}: run the same command then`
}

/** Describes an outcome for people, in one line without any secret. */
export function describeOutcome(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'body':
      return `${outcome.status}, ${outcome.vain === undefined ? '' : `${outcome.vain} in `}${outcome.bytes} bytes`
    case 'no_content':
    case 'not_modified':
      return `${outcome.status}, no body`
    case 'parked':
      return `no more requests before ${formatInstant(Math.ceil(outcome.until / 1000))}: ${outcome.words}`
    case 'again':
      return `${outcome.status ?? outcome.reason}: ${outcome.words}`
    case 'stopped':
      if (outcome.by === 'unreachable') return outcome.words
      return outcome.by === 'signal' ? 'interrupted' : 'the number of requests allowed to this run is used up'
    case 'unexpected':
      return (
        'unexpected status ' +
        `${outcome.status}${outcome.location === null ? '' : ` (redirect to ${outcome.location})`}: ` +
        outcome.words
      )
    case 'too_large':
      return largeWords[outcome.by] ?? `${outcome.status}: ${outcome.words}`
    default:
      return `${outcome.status}: ${outcome.words}`
  }
}
