import { dimensions, type Endpoint } from '../../catalog/catalogue.ts'
import { isObject } from '../../base/json.ts'
import { type QueryKey, type QueryKeys, queryKeys, type Wire } from '../../catalog/wire.ts'
import type { Window } from '../../base/windows.ts'
import type { HeardAnswer } from './answers.ts'

/** Names that providers of this kind give their parameters; since and until go in pairs. */
const spellings: Readonly<Partial<Record<QueryKey, readonly string[]>>> = {
  asset: ['asset', 'symbol', 'coin', 'id'],
  interval: ['interval', 'frequency', 'resolution', 'freq'],
  format: ['format', 'fmt', 'output'],
  currency: ['currency', 'quote'],
  exchange: ['exchange', 'venue'],
  network: ['network', 'chain'],
}
const spans = [
  ['since', 'until'],
  ['start', 'end'],
  ['from', 'to'],
  ['start_time', 'end_time'],
  ['startTime', 'endTime'],
  ['begin', 'end'],
] as const

/**
 * Finds the lists of values by query key in a provider's description of a path, and the key that contains them; null if
 * there are none.
 */
export function listsIn(body: unknown, wire: Wire, asset: string) {
  if (!isObject(body)) return null
  const parameters = wire.metadata === null ? undefined : body[wire.metadata.parameters]
  if (wire.metadata !== null && isObject(parameters)) return { name: wire.metadata.parameters, lists: parameters }
  const found = Object.entries(body).find(
    ([, value]) => isObject(value) && Object.values(value).some((list) => includes(list, asset)),
  )
  return found === undefined ? null : { name: found[0], lists: found[1] as Readonly<Record<string, unknown>> }
}

function includes(list: unknown, value: string): boolean {
  return list === value || (Array.isArray(list) && list.includes(value))
}

/** Determines query keys from a provider's own lists: a list is recognised by a value that it must contain. */
export function keysFrom(lists: Readonly<Record<string, unknown>>, endpoint: Endpoint, asset: string, keys: QueryKeys) {
  const knownValues: [QueryKey, readonly string[]][] = [['asset', [asset]]]
  for (const { singular, plural } of dimensions)
    if (endpoint[plural].length > 0) knownValues.push([singular, endpoint[plural]])
  const learnt = knownValues.flatMap(([name, values]): [QueryKey, string][] => {
    if (Object.hasOwn(lists, keys[name])) return []
    const found = Object.entries(lists).find(([, list]) => values.some((value) => includes(list, value)))
    return found === undefined ? [] : [[name, found[0]]]
  })
  return { ...keys, ...Object.fromEntries(learnt) }
}

/**
 * Returns the keys that the answer to a request for daily points shows to be wrong: named in a refusal, or without any
 * effect.
 */
export function wrongKeys(answer: HeardAnswer, { since, until }: Window): readonly QueryKey[] {
  const { outcome, body } = answer
  if (outcome.kind === 'refused') {
    const about =
      /unknown|unrecogni|unexpected|unsupported param|invalid param|not (?:accepted|allowed|supported|known)|missing|required/i
    return outcome.parameter !== null && about.test(outcome.words) ? [outcome.parameter as QueryKey] : []
  }
  const times = timesOf(body)
  if (times.length === 0) return []
  if (times.some((t) => t < since - 86_400 || t > until + 86_400)) return ['since', 'until']
  return times.some((t, at) => at > 0 && t - (times[at - 1] ?? 0) < 86_400) ? ['interval'] : []
}

function timesOf(body: unknown): number[] {
  if (!Array.isArray(body)) return []
  const times = body.map((point) => (isObject(point) ? point['t'] : null)).filter((t) => typeof t === 'number')
  return [...new Set(times)].toSorted((a, b) => a - b)
}

/**
 * Returns the next keys to try after an answer, preferably names that the refusal itself mentions; null if none are
 * left.
 */
export function nextKeys(
  keys: QueryKeys,
  answer: HeardAnswer,
  window: Window,
  tried: ReadonlySet<string>,
): QueryKeys | null {
  const [wrong] = wrongKeys(answer, window)
  if (wrong === undefined) return null
  const words = 'words' in answer.outcome ? answer.outcome.words : ''
  const isNamed = (name: string): boolean => new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(words)
  const guesses: QueryKeys[] =
    wrong === 'since' || wrong === 'until'
      ? spans
          .toSorted(([a], [b]) => Number(isNamed(b)) - Number(isNamed(a)))
          .map(([from, to]) => ({ ...keys, since: from, until: to }))
      : (spellings[wrong] ?? [])
          .toSorted((a, b) => Number(isNamed(b)) - Number(isNamed(a)))
          .map((name) => ({ ...keys, [wrong]: name }))
  return guesses.find((guess) => !tried.has(spelling(guess))) ?? null
}

/** Returns a text that is equal for equal keys. */
export const spelling = (keys: QueryKeys): string => queryKeys.map((name) => keys[name]).join(' ')
