import { usage } from '../base/errors.ts'
import { type Interval, isOffered } from '../base/time.ts'
import { isObject } from '../base/json.ts'
import { visible } from '../base/visible-text.ts'

/** One endpoint of a provider's own listing, in the catalogue's words; unknown keys stay in `extra`. */
export interface ListedEndpoint {
  readonly path: string
  readonly intervals?: readonly Interval[]
  readonly currencies?: readonly string[]
  readonly exchanges?: readonly string[]
  readonly networks?: readonly string[]
  readonly takes?: readonly string[]
  readonly params?: Readonly<Record<string, string>>
  readonly about?: string
  readonly extra?: Readonly<Record<string, unknown>>
}

const aliases: ReadonlyMap<string, keyof ListedEndpoint> = new Map(
  Object.entries({
    intervals: 'intervals',
    resolutions: 'intervals',
    frequencies: 'intervals',
    currencies: 'currencies',
    exchanges: 'exchanges',
    networks: 'networks',
    about: 'about',
    description: 'about',
    summary: 'about',
  } as const),
)

/** A metric's path: parts that a URL neither resolves (`..`) nor reads otherwise, without signs that cannot be seen. */
export const metricPath = /^(?!\.\.?(?:\/|$))[^/\s?#%\\\p{C}]+(?:\/(?!\.\.?(?:\/|$))[^/\s?#%\\\p{C}]+)*$/u

const switches = ['since', 'until', 'format', 'timestamp_format'] as const

/** Reads a JSON list of paths or of objects with a path and parameters; also under `data`, `endpoints` or `metrics`. */
export function readListing(name: string, text: string): ListedEndpoint[] {
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (cause) {
    throw usage(name, {
      expected: 'JSON: a list of paths or of objects with a path',
      got: (cause as Error).message,
      cause,
    })
  }
  const list = Array.isArray(value) ? value : unwrap(value)
  if (!list) throw usage(name, { expected: 'a list of paths or of objects with a path', got: typeof value })
  const listed = list.map((row, index) => readRow(`${name}: [${index}]`, row))
  const seen = new Map<string, ListedEndpoint>()
  for (const row of listed) if (!seen.has(row.path)) seen.set(row.path, row)
  return [...seen.values()]
}

function unwrap(value: unknown): unknown[] | undefined {
  if (!isObject(value)) return undefined
  return Object.entries(value).find(
    ([key, inner]) => ['data', 'endpoints', 'metrics'].includes(key) && Array.isArray(inner),
  )?.[1] as unknown[] | undefined
}

function readRow(where: string, row: unknown): ListedEndpoint {
  if (typeof row === 'string') return { path: cleanPath(where, row) }
  if (!isObject(row)) throw usage(where, { expected: 'a path or an object with a path', got: JSON.stringify(row) })
  const path = row['path'] ?? row['endpoint'] ?? row['url']
  if (typeof path !== 'string')
    throw usage(where, { expected: 'an object with `path`', got: Object.keys(row).join(', ') || 'an empty object' })
  const knownFields: Record<string, unknown> = {}
  const extra: [string, unknown][] = []
  for (const [key, value] of Object.entries(row)) {
    if (key === 'path' || key === 'endpoint' || key === 'url' || switches.includes(key as (typeof switches)[number]))
      continue
    const target = aliases.get(key)
    if (target === 'about' && typeof value === 'string') knownFields['about'] = value
    else if (target !== undefined && target !== 'about' && isWords(value)) {
      const words = [...new Set(value)].filter((word) => target !== 'intervals' || isOffered(word))
      if (words.length > 0) knownFields[target] = words
      if (words.length < new Set(value).size) extra.push([key, value])
    } else if (key === 'params' && isTexts(value))
      knownFields['params'] = Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)]))
    else extra.push([key, value])
  }
  const takenSwitches = switches.filter((key) => row[key] !== false)
  const takes = takenSwitches.length < switches.length ? { takes: takenSwitches } : {}
  return {
    path: cleanPath(where, path),
    ...knownFields,
    ...takes,
    ...(extra.length > 0 ? { extra: Object.fromEntries(extra) } : {}),
  }
}

/** Returns the part of a path after `/v1/metrics/`, without slashes at the ends. */
function cleanPath(where: string, path: string): string {
  const bare = path
    .replace(/^https?:\/\/[^/]+/, '')
    .replace(/^.*\/?v1\/metrics\//, '')
    .replaceAll(/^\/+|\/+$/g, '')
  if (!metricPath.test(bare)) throw usage(where, { expected: 'a path such as supply/current_pit', got: visible(path) })
  return bare
}

function isWords(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((word) => typeof word === 'string' && word !== '')
}

function isTexts(value: unknown): value is Record<string, string | number | boolean> {
  return isObject(value) && Object.values(value).every((text) => ['string', 'number', 'boolean'].includes(typeof text))
}

/** A listed endpoint as a row of a catalogue. */
export interface ImportedRow extends ListedEndpoint {
  readonly revisable?: true
  /** The exchange used if a request names none. */
  readonly default?: { readonly exchange: string }
}

/**
 * Converts a listed endpoint to a row of a catalogue; a path without `_pit` is revisable, so its values may change
 * later.
 */
export function importedRow<Row extends ListedEndpoint>(row: Row): Row & Pick<ImportedRow, 'revisable'> {
  return row.path.endsWith('_pit') ? row : { ...row, revisable: true }
}
