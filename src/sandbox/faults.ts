import { usage } from '../base/errors.ts'
import { suggestion } from '../base/suggestion.ts'
import { parseDuration, parseInstant } from '../base/time.ts'
import { globTest } from '../catalog/globs.ts'
import { hashText, unit } from './world/noise.ts'

type ParamKind = 'number' | 'instant' | 'duration' | 'text' | 'switch'

/** Conditions on the requests that a fault strikes; a request must fit every part that is given. */
const selectors = {
  path: [
    'text',
    'glob over the path: indicators/*, registry/changes, metadata/*, metrics, registry, metadata; * fits any ' +
      'characters',
  ],
  asset: ['text', 'only this asset'],
  nth: ['number', 'only the N-th fitting request'],
  first: ['number', 'only the first N fitting requests'],
  times: ['number', 'at most N strikes'],
  share: ['number', 'this share of the requests, 0 to 1, chosen by hash'],
  each: ['switch', 'count for each address apart: first=1,each fails every address once'],
  from: ['instant', 'only from this instant of the sandbox clock'],
  until: ['instant', 'only before this instant of the sandbox clock'],
} as const satisfies Record<string, readonly [ParamKind, string]>

const parameters = {
  retry: ['duration', 'Retry-After'],
  date: ['switch', 'Retry-After as HTTP date'],
  code: ['text', 'error code in the body'],
  status: ['number', 'HTTP status'],
  ms: ['number', 'milliseconds to wait'],
  bytes: ['number', 'bytes before the cut'],
  announce: ['switch', 'with the Content-Length of the whole body'],
  clean: ['switch', 'the connection ends as if all were sent'],
  t: ['instant', 'the point with this t'],
  point: ['number', 'position of the point in the answer, negative from the end (default 0)'],
  n: ['number', 'how many points from there (default 1)'],
  v: ['number', 'the value instead'],
  by: ['number', 'factor on the value (default 1.01)'],
  shown: ['instant', 'when the point appears'],
  delay: ['duration', 'how much later'],
  block: ['number', 'length of the reversed runs (default 8)'],
  at: ['instant', 'when it happens; absent: when the fault is set'],
  layout: ['text', 'plain, data or next_cursor'],
  events: ['text', 'name of the events array: data, changes or events'],
  embedded: ['text', 'where deployments stand: both, array or products'],
  record: ['text', 'a record of the registry: products/ID'],
  field: ['text', 'the field of it (default name)'],
  value: ['text', 'the new value, as JSON or text; absent: the old one with a mark'],
  parameter: ['text', 'query key of the list that is returned instead'],
  values: ['text', 'the values of that list, joined by +; absent: none'],
} as const satisfies Record<string, readonly [ParamKind, string]>

const choices: Readonly<Record<string, readonly string[]>> = {
  layout: ['plain', 'data', 'next_cursor'],
  events: ['data', 'changes', 'events'],
  embedded: ['both', 'array', 'products'],
}

type SelectorName = keyof typeof selectors
type ParamName = keyof typeof parameters

/** The API that a fault strikes. */
type FaultSide = 'any' | 'metrics' | 'metadata' | 'registry'

/** A row of the table of faults. */
export interface FaultEntry {
  readonly about: string
  readonly side: FaultSide
  /** The parameters that it takes. */
  readonly takes: readonly ParamName[]
  /** Answer that replaces the provider's. */
  readonly instead?: readonly [status: number, code: string, message: string]
}

const entry = (side: FaultSide, about: string, ...takes: ParamName[]): FaultEntry => ({ about, side, takes })
const refuses = (status: number, about: string, code: string, message: string, ...takes: ParamName[]): FaultEntry => ({
  ...entry('any', about, ...takes, 'code'),
  instead: [status, code, message],
})
const chosen = ['t', 'point', 'n'] as const

/** Faults that exist: the table drives the parser, the check of parameters and `--help`. */
export const faultTable = {
  'status-400': refuses(400, 'bad request', 'invalid_parameter', 'bad request'),
  'status-401': refuses(401, 'key refused', 'unauthorized', 'invalid or missing API key'),
  'status-429': refuses(429, 'rate limited', 'rate_limited', 'rate limit exceeded', 'retry', 'date'),
  'status-500': refuses(500, 'internal error', 'internal_error', 'internal error'),
  'status-503': refuses(503, 'unavailable', 'unavailable', 'service unavailable', 'retry', 'date'),
  'status-504': refuses(504, 'gateway timeout', 'gateway_timeout', 'gateway timeout'),
  'forbidden-403': refuses(403, 'outside the plan', 'forbidden', 'not part of the plan of this key'),
  'gone-404': refuses(404, 'no such path', 'not_found', 'not found'),
  'no-content-204': entry('any', 'no content'),
  'empty-200': entry('any', 'status 200 and no byte'),
  html: entry('any', 'the page of a proxy', 'status'),
  reset: entry('any', 'the connection is reset before the answer'),
  'slow-first-byte': entry('any', 'waits before the answer', 'ms'),
  'cut-body': entry('any', 'the body ends too early', 'bytes', 'announce', 'clean'),
  'cut-gzip': entry('any', 'the gzip stream ends too early', 'bytes'),
  'empty-list': entry('metrics', 'the series is []'),
  rewrite: entry('metrics', 'a different value than before', ...chosen, 'v', 'by'),
  late: entry('metrics', 'points are hidden until later', ...chosen, 'shown', 'delay'),
  vanished: entry('metrics', 'points are missing', ...chosen),
  duplicate: entry('metrics', 'points come twice', ...chosen),
  'duplicate-conflict': entry('metrics', 'points come twice with two values', ...chosen, 'v', 'by'),
  disorder: entry('metrics', 'points are not sorted by t', 'block'),
  'computed-at-changed': entry('metrics', 'computed_at moves', ...chosen, 'delay'),
  'new-component': entry('metrics', 'object values have one more component from t on', 't'),
  'becomes-object': entry('metrics', 'plain values are objects from t on', 't'),
  'null-filled': entry('metrics', 'null (once, unless you say more), later the number', ...chosen),
  'poison-object': entry('any', 'an object where an array belongs, and the reverse'),
  'poison-millisecond-t': entry('metrics', 't in milliseconds', 'point'),
  'poison-text-v': entry('metrics', 'v is text', 'point'),
  'poison-nan': entry('metrics', 'v is NaN', 'point'),
  'poison-overflow': entry('metrics', 'v is 1e400', 'point'),
  'metadata-says': entry(
    'metadata',
    'metadata name different values, or t as the beginning',
    'parameter',
    'values',
    't',
  ),
  'new-epoch': entry('registry', 'the feed starts a new epoch', 'at'),
  'repeated-events': entry('registry', 'events come twice across pages'),
  'empty-pages': entry('registry', 'pages without events while has_more'),
  'null-cursor': entry('registry', 'next_cursor is null at the tail'),
  'lost-event': entry('registry', 'the feed leaves out the events of a record', 'record'),
  'wrong-retirement': entry('registry', 'snapshot and feed show an active record as inactive', 'record'),
  'silent-change': entry('registry', 'a field of a record changes without an event', 'record', 'field', 'value'),
  'filter-omits': entry('registry', 'filtered lists leave out a record', 'record'),
  'registry-shape': entry('registry', 'different layouts of the bodies', 'layout', 'events', 'embedded'),
} as const satisfies Record<string, FaultEntry>

/** The name of a fault. */
export type FaultKind = keyof typeof faultTable

type ParamValue<K extends ParamKind> = K extends 'text' ? string : K extends 'switch' ? boolean : number

/** Requests that a fault strikes. */
type FaultMatch = {
  readonly [K in SelectorName]?: ParamValue<(typeof selectors)[K][0]> | undefined
}

/** Scripted fault: instants in Unix seconds, durations in seconds. */
export type Fault = {
  readonly kind: FaultKind
  readonly match?: FaultMatch | undefined
} & { readonly [K in ParamName]?: ParamValue<(typeof parameters)[K][0]> | undefined }

/**
 * The ways in which the registry contradicts itself about a record. `lost-event`: its events are left out of the feed.
 * `wrong-retirement`: snapshot and feed say inactive. `silent-change`: a field has another value everywhere, and no
 * event says so. `filter-omits`: filtered lists leave it out.
 */
const lies: ReadonlySet<string> = new Set(['lost-event', 'wrong-retirement', 'silent-change', 'filter-omits'])

/** Syntax of a fault on the command line. */
const faultSyntax = 'KIND[@PATH][:NAME=VALUE,…]'

/** Reads `status-500@indicators/*:first=2,asset=BTC`. */
export function parseFault(text: string): Fault {
  const match = /^([a-z0-9-]+)(?:@([^:]+))?(?::(.*))?$/.exec(text.trim())
  if (!match?.[1]) throw usage('--fault', { expected: faultSyntax, got: `"${text}"` })
  const settings: Record<string, unknown> = match[2] === undefined ? {} : { path: match[2] }
  for (const part of (match[3] ?? '').split(',').filter((piece) => piece.trim().length > 0)) {
    const cut = part.indexOf('=')
    if (cut < 0) settings[part.trim()] = true
    else settings[part.slice(0, cut).trim()] = part.slice(cut + 1).trim()
  }
  return readFault({ kind: match[1], ...settings })
}

/** Reads one fault from JSON or YAML: selectors may be under `match` or next to `kind`; text is parsed too. */
export function readFault(value: unknown): Fault {
  if (typeof value === 'string') return parseFault(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw usage('fault', { expected: `an object with "kind" or ${faultSyntax}`, got: JSON.stringify(value) })
  }
  const { kind, match, ...rest } = value as Record<string, unknown>
  if (typeof kind !== 'string' || !isKind(kind)) throw unknownKind(String(kind))
  const takes: readonly string[] = faultTable[kind].takes
  const where: Record<string, unknown> = {}
  const fault: Record<string, unknown> = { kind }
  for (const [name, value] of Object.entries({ ...(match as object | undefined), ...rest })) {
    if (Object.hasOwn(selectors, name)) where[name] = read(name, selectors[name as SelectorName][0], value)
    else if (takes.includes(name)) fault[name] = read(name, parameters[name as ParamName][0], value)
    else {
      const knownNames = [...takes, ...Object.keys(selectors)]
      throw usage(`fault ${kind}`, { expected: `one of ${knownNames.join(', ')}`, got: `"${name}"` })
    }
  }
  if (lies.has(kind) && fault.record === undefined)
    throw usage(`fault ${kind}`, { expected: 'record=products/ID', got: 'no record' })
  if (kind === 'late' && fault.shown === undefined && fault.delay === undefined) {
    throw usage('fault late', { expected: 'shown=TIME or delay=DURATION', got: 'neither' })
  }
  return (Object.keys(where).length > 0 ? { ...fault, match: where } : fault) as Fault
}

const isKind = (name: string): name is FaultKind => Object.hasOwn(faultTable, name)

const numbers: { readonly [K in ParamKind]?: { expected: string; read: (text: string) => number | undefined } } = {
  number: { expected: 'a number', read: (text) => (text.trim() === '' ? undefined : Number(text)) },
  instant: { expected: 'a date', read: parseInstant },
  duration: {
    expected: 'a duration such as 90s or 6h',
    read: (text) => parseDuration(/^\d+$/.test(text) ? `${text}s` : text),
  },
}

function read(name: string, kind: ParamKind, written: unknown): string | number | boolean {
  const text = String(written)
  const allowed = choices[name]
  if (allowed !== undefined && !allowed.includes(text))
    throw usage(`fault parameter ${name}`, { expected: allowed.join(', '), got: `"${text}"` })
  if (kind === 'text' && typeof written !== 'object') return text
  if (kind === 'switch' && /^(true|false)$/.test(text)) return text === 'true'
  const value = numbers[kind]?.read(text)
  if (value !== undefined && Number.isFinite(value)) return value
  throw usage(`fault parameter ${name}`, { expected: numbers[kind]?.expected ?? kind, got: `"${text}"` })
}

function unknownKind(name: string) {
  const kinds = Object.keys(faultTable)
  const near = suggestion(name, kinds)
  const hint = near === undefined ? '' : `did you mean ${near}? `
  return usage(`unknown fault "${name}"`, { next: `${hint}known: ${kinds.join(', ')}` })
}

/** Formats the whole table as text for `--help`. */
export function describeFaults(): string {
  const lines = [`Faults, written ${faultSyntax} or as JSON {"kind": …, NAME: VALUE}:`]
  for (const [kind, { about, side, takes }] of Object.entries<FaultEntry>(faultTable)) {
    const names = takes.length === 0 ? '' : ` (${takes.join(', ')})`
    lines.push(`  ${kind.padEnd(21)} ${about}${names}${side === 'any' ? '' : `, ${side} only`}`)
  }
  lines.push('Every fault takes:')
  for (const [name, [, about]] of Object.entries(selectors)) lines.push(`  ${name.padEnd(21)} ${about}`)
  lines.push('Parameters:')
  for (const [name, [, about]] of Object.entries(parameters)) lines.push(`  ${name.padEnd(21)} ${about}`)
  return lines.join('\n')
}

/** The request that a fault's selectors are compared with. */
interface FaultTarget {
  readonly side: 'metrics' | 'metadata' | 'registry'
  /** `/v1/metrics/indicators/sopr_pit` */
  readonly path: string
  /** `indicators/sopr_pit`, `registry/changes` */
  readonly shortPath: string
  /** Path and query without the key. */
  readonly address: string
  readonly asset: string | null
  /** The sandbox clock, Unix seconds. */
  readonly now: number
}

interface Counts {
  /** Requests that the fault's selectors fit. */
  seen: number
  /** Requests that it struck. */
  struck: number
}

/** A list of faults with how often each one was met; the same requests give the same strikes. */
export interface FaultScript {
  readonly faults: readonly Fault[]
  /** Time when the list was set, Unix seconds. */
  readonly setAt: number
  /** Counts by place in the list, or place and address. */
  readonly counts: Map<string, Counts>
  readonly seed: number
}

/** Creates a script at its beginning; `setAt` is the instant at which the list was set. */
export function createScript(faults: readonly Fault[], seed: number, setAt: number): FaultScript {
  return { faults: faults.map(withDefaults), setAt, counts: new Map<string, Counts>(), seed }
}

/**
 * Adds defaults to a fault. A null is filled later only if it is not for ever: without any selector of time or count it
 * comes once.
 */
function withDefaults(fault: Fault): Fault {
  if (fault.kind !== 'null-filled') return fault
  const { first, times, nth, from, until } = fault.match ?? {}
  const limited = [first, times, nth, from, until].some((value) => value !== undefined)
  return limited ? fault : { ...fault, match: { ...fault.match, first: 1 } }
}

/** Finds the faults that strike this request, in the order of the list; counts the request. */
export function strike(script: FaultScript, target: FaultTarget): Fault[] {
  return script.faults.filter((fault, index) => strikes(script, fault, index, target))
}

function strikes(script: FaultScript, fault: Fault, index: number, target: FaultTarget): boolean {
  const side = faultTable[fault.kind].side
  if (side !== 'any' && side !== target.side) return false
  const match = fault.match ?? {}
  // Metadata are requested in addition to points: only faults that name them strike them.
  if (target.side === 'metadata' && side === 'any' && match.path?.startsWith('metadata') !== true) return false
  if (match.path !== undefined && !fitsPath(match.path, target)) return false
  if (match.asset !== undefined && match.asset !== target.asset) return false
  if (match.from !== undefined && target.now < match.from) return false
  if (match.until !== undefined && target.now >= match.until) return false
  const key = match.each === true ? `${index} ${target.address}` : String(index)
  const counts = script.counts.get(key) ?? { seen: 0, struck: 0 }
  script.counts.set(key, counts)
  counts.seen++
  if (match.nth !== undefined && counts.seen !== match.nth) return false
  if (match.first !== undefined && counts.seen > match.first) return false
  if (match.share !== undefined && fraction(`${script.seed} ${key} ${target.address} ${counts.seen}`) >= match.share) {
    return false
  }
  if (match.times !== undefined && counts.struck >= match.times) return false
  counts.struck++
  return true
}

function fitsPath(glob: string, target: FaultTarget): boolean {
  if (glob === target.side) return true
  const fits = globTest(glob)
  return fits(target.shortPath) || fits(target.path)
}

/** Computes a number in [0, 1) that depends on nothing but the text. */
export const fraction = (text: string): number => unit(hashText(text))

/** Finds the first fault of this kind. */
export function pick(faults: readonly Fault[], kind: FaultKind): Fault | undefined {
  return faults.find((fault) => fault.kind === kind)
}
