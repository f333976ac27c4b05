import { jsonOf } from '../../base/json.ts'
import { redact, withoutHalfKey } from '../../base/secrets.ts'
import { formatInstant, type Instant, instantOf } from '../../base/time.ts'
import { ageOf, dateOf, header, type Headers, readLimits } from './governor.ts'

/** The facts of every answer: when it came, how long it took, and the few headers that later stages use. */
type Answer = {
  readonly status: number
  /** When the answer's head was read, in milliseconds since 1970 by the local clock. */
  readonly at: number
  /** The provider's `Date`, in whole seconds; null where it sent none. */
  readonly date: Instant | null
  /** How long the answer lay in a cache before it came (`Age`), in seconds; 0 where nobody says. */
  readonly age: number
  /** From sending the request to the end of the body. */
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

/** Why a request is worth repeating. */
export type AgainReason = 'status' | 'connect' | 'reset' | 'timeout' | 'cut' | 'protocol'

/** Why a body is of no use: it begins as markup does, or is JSON without anything in it. */
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

/** 403 (`forbidden`), or 404 and 410 (`gone`). */
export type DeniedOutcome = { readonly kind: 'forbidden' | 'gone' } & Answer & Words

/**
 * Why an answer is too large: its status (413, 414, 504), the byte ceiling, or a compressed body that would fill the
 * disk.
 */
export type TooLargeReason = 'status' | 'ceiling' | 'bomb'

/** How one request ended. Closed: whoever handles it must handle each kind. */
export type Outcome =
  | BodyOutcome
  | NoContentOutcome
  | ({ readonly kind: 'not_modified' } & Answer)
  | ({ readonly kind: 'unauthorised' } & Answer & Words)
  | ({ readonly kind: 'forbidden' } & Answer & Words)
  | ({ readonly kind: 'gone' } & Answer & Words)
  /** 400 or 422; `parameter` is the canonical name of the query parameter that the words name, if any. */
  | ({ readonly kind: 'refused'; readonly parameter: string | null } & Answer & Words)
  /** 413, 414, 504, or a body beyond the byte ceiling (`by`): ask for less; a bomb is no smaller then. */
  | ({ readonly kind: 'too_large'; readonly by: TooLargeReason } & Answer & Words)
  /** 429; `waitMs` is what the provider asks for, never shortened; null where it does not say. */
  | ({ readonly kind: 'limited'; readonly waitMs: number | null } & Answer & Words)
  /** A spent quota or a very long wait: nothing more is sent before `until` (milliseconds since 1970). */
  | { readonly kind: 'parked'; readonly until: number; readonly words: string; readonly sandbox?: string | null }
  | {
      readonly kind: 'again'
      readonly reason: AgainReason
      readonly status: number | null
      /** The provider's own name of the request, where it gave one. */
      readonly requestId?: string | null
      /** The least wait the provider asks for before the next try; null where it does not say. */
      readonly waitMs: number | null
      readonly words: string
      readonly requestMs: number
    }
  /** A status that this program has no use for; a redirect shows where it points. */
  | ({ readonly kind: 'unexpected'; readonly location: string | null } & Answer & Words)
  /**
   * Not sent, or given up: by the caller's signal, because the run may send no more requests, or because nobody
   * answers.
   */
  | { readonly kind: 'stopped'; readonly by: 'signal' | 'max_requests' }
  | { readonly kind: 'stopped'; readonly by: 'unreachable'; readonly words: string }

/** A query parameter: the name this program uses and the key it has on the wire. */
export interface QueryParameter {
  readonly name: string
  readonly key: string
}

/** What `classify` needs in addition to the answer itself. */
export interface AnswerContext {
  /** When the answer's head was read, milliseconds since 1970. */
  readonly at: number
  /** Milliseconds since the request was sent. */
  readonly requestMs: number
  /** Texts to replace in the provider's words. */
  readonly secrets: readonly string[]
  /** Parameters that a refusal may name. */
  readonly parameters: readonly QueryParameter[]
}

/** A 200 is `body` without its file: whoever streamed it adds `file` and `bytes`. */
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

/** The part of an outcome that every answer carries; `start` is the beginning of its body. */
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

/** What an answer's request row keeps of the provider's clock. */
export function clockOf(outcome: Outcome): { provider_date?: Instant } {
  return 'date' in outcome && outcome.date !== null ? { provider_date: outcome.date } : {}
}

/** How many bytes of an error body are worth reading. */
export const startBytes = 16_384
const shownCharacters = 300
/** At most 300 characters of the text on one line, secrets replaced before anything is cut off. */
export function wordsOf(text: string, secrets: readonly string[]): string {
  const line = withoutHalfKey(redact(text, secrets), secrets)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
  return Array.from(line.slice(0, shownCharacters * 2))
    .slice(0, shownCharacters)
    .join('')
}

/** The error code of a JSON body: `code` at top level, under `error`, or in `errors[0]`. */
function codeOf(text: string, secrets: readonly string[]): string | null {
  const code = stringIn(text, [['code'], ['error', 'code'], ['errors', '0', 'code'], ['error']], /^[\w.-]{1,64}$/)
  return code === null ? null : redact(code, secrets)
}

/** The first of these members of a JSON body that is such a text. */
function stringIn(text: string, paths: readonly (readonly string[])[], shape: RegExp): string | null {
  const body = jsonOf(text)
  const found = paths.map((path) => path.reduce<unknown>(member, body))
  return found.find((value): value is string => typeof value === 'string' && shape.test(value)) ?? null
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

/**
 * The parameter that a refusal names: by its own name as a word, or by its key in quotes, before `=`, or after a word
 * such as "parameter"; quotes may be escaped as JSON does. A bare `a` or `i` in a sentence names nothing.
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

/** Where a redirect points, without host, credentials and query: those may carry a key. */
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

/** What a request's row says of an answer that brought nothing: what happened, and by which name to ask about it. */
export const describeFailure = (outcome: Outcome): string => `${describeOutcome(outcome)}${requestIdWords(outcome)}`

/** The provider's own name of the request as the end of a sentence; empty where it gave none. */
export function requestIdWords(outcome: Outcome): string {
  const id = 'requestId' in outcome ? outcome.requestId : null
  return id ? ` (request id ${id})` : ''
}

const idHeaders = ['x-request-id', 'request-id', 'x-amzn-requestid', 'x-correlation-id', 'cf-ray'] as const
const idKeys = [['request_id'], ['requestId'], ['error', 'request_id'], ['error', 'requestId']] as const

/** The provider's own name of the request, for its support: from a header, else from the body of a refusal. */
function requestIdOf(headers: Headers, start: string, secrets: readonly string[]): string | null {
  const named = idHeaders.map((name) => header(headers, name)).find((value) => value !== null)
  const requestName = named ?? stringIn(start, idKeys, /^[\w.:/+=-]{1,128}$/)
  return requestName === null || requestName === undefined ? null : wordsOf(requestName, secrets)
}

/** What to type after an early stop; the instant is that at which a spent quota comes back. */
export function resumeHint(resumeAt: string | null): string {
  if (resumeAt === null) return 'run the same command again'
  return `the quota is back at ${formatInstant(Math.ceil(instantOf(resumeAt)))}: run the same command then`
}

/** What a person reads: one line without any secret. */
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
