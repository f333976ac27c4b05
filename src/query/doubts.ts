import type { SeriesName } from '../catalog/series.ts'
import { type Engine, quote, type Row } from '../store/engine.ts'
import { nearPaths, suggestion } from '../suggestion.ts'
import type { Empty } from './filled.ts'
import type { Note } from './note.ts'
import { type PanelSpec, usualInterval } from './panel.ts'
import { type PointsFilter, price, priced, type Standard, standardsOf } from './points.ts'
import { readsRegistry } from './registry-objects.ts'
import { statementsOf } from './statements.ts'
import { argumentsOf, callsIn, comparedTexts, parsed, tablesIn, textsIn } from './tree.ts'
import { withAsOf } from './with-as-of.ts'

const dimensions = ['currency', 'exchange', 'network'] as const
/** Columns that hold nothing for most metrics. */
const oftenNull: ReadonlySet<string> = new Set([...dimensions, 'o', 'extra', 'computed_at', 'component'])
const joins: ReadonlySet<string> = new Set(['pit_join', 'pit_long', 'pit_window', 'resample'])

/** What was asked of a metric that told nothing. */
interface Asked {
  /** Path, with a pointer behind `#` where one was named. */
  readonly name: string
  /** Undefined or `*`: any. */
  readonly interval: string | undefined
  readonly assets: readonly string[]
  readonly dimensions: Readonly<Partial<Record<(typeof dimensions)[number], string | undefined>>>
  readonly component: string | undefined
  /** Whether there was nothing for any asset. */
  readonly everywhere: boolean
}

/** The metrics that there are, with the catalogue's defaults. */
type Known = ReadonlyMap<string, Standard>

async function knownTo(engine: Engine): Promise<Known> {
  return new Map((await standardsOf(engine)).map((standard) => [standard.metric, standard]))
}

/** Whether a result is one to wonder about: no rows, or a column that tells nothing although it mostly does. */
export function isDoubtful(rows: number, empty: readonly Empty[]): boolean {
  return rows === 0 || empty.some(({ column, everywhere }) => everywhere && !oftenNull.has(column.toLowerCase()))
}

/** What may be wrong with a query that found nothing, by the texts in it. */
export async function doubtsOfQuery(engine: Engine, sql: string): Promise<readonly Note[]> {
  if (!(await isWholeLake(engine))) return []
  const trees: unknown[] = []
  for (const { text } of statementsOf(sql)) {
    const tree = await parsed(engine, selectIn(text))
    if (!('error' in tree)) trees.push(tree.statements)
  }
  return withAsOf(engine, undefined, async () => {
    const known = await knownTo(engine)
    return [
      ...doubtsOfPoints(trees),
      ...(await doubtsOfJoins(engine, trees, known)),
      ...doubtsOfPaths(trees, known),
      ...(await doubtsOfFilters(engine, trees, known)),
      ...(await doubtsOfRegistry(engine, trees)),
      ...(await doubtsOfCase(engine, trees)),
    ]
  })
}

/** What may be wrong with the metrics of a panel that told nothing of some assets. */
export async function doubtsOfPanel(
  engine: Engine,
  spec: PanelSpec,
  { rows, empty }: { readonly rows: number; readonly empty: readonly Empty[] },
): Promise<readonly Note[]> {
  if (rows === 0 && spec.universe !== undefined) return [{ code: 'no-member', subject: spec.universe }]
  const field = ['v', 't', 'available_at', 'age'].find((one) => (spec.fields ?? ['v']).some((name) => name === one))
  if (field === undefined || empty.length === 0 || !(await isWholeLake(engine))) return []
  const { currency, exchange, network, component, interval = usualInterval } = spec
  const asked = spec.metrics.flatMap(({ name: own, metric: name }): Asked[] => {
    const lost = empty.find(({ column }) => column === (field === 'v' ? own : `${own}.${field}`))
    if (lost === undefined) return []
    const { everywhere } = lost
    const assets = lost.assets.filter((asset) => asset !== '')
    return [{ name, interval, assets, dimensions: { currency, exchange, network }, component, everywhere }]
  })
  return withAsOf(engine, undefined, async () => reasons(engine, asked, await knownTo(engine)))
}

/** What may be wrong with a filter of points that found none. */
export async function doubtsOfFilter(engine: Engine, filter: PointsFilter): Promise<readonly Note[]> {
  if (!(await isWholeLake(engine))) return []
  const { currency, exchange, network } = filter
  const [metrics, assets] = [[filter.metrics ?? []].flat(), [filter.assets ?? []].flat()]
  return withAsOf(engine, undefined, async () => {
    const known = await knownTo(engine)
    const rest = { assets, dimensions: { currency, exchange, network }, component: undefined, everywhere: false }
    const intervalOf = (name: string) => filter.interval ?? known.get(name)?.interval ?? undefined
    const asked = metrics.map((name): Asked => ({ name, interval: intervalOf(name), ...rest }))
    return reasons(engine, asked, known)
  })
}

/** The SELECT that a temporary table or view is made from; any other statement as it is. */
function selectIn(text: string): string {
  return text.replace(/^\s*CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(?:TABLE|VIEW)\s+\S+\s+AS\b/i, '')
}

async function isWholeLake(engine: Engine): Promise<boolean> {
  const views = await engine.rows(
    `SELECT 1 AS found FROM system.main.duckdb_views() AS v WHERE v.view_name IN ('endpoints', 'components', 'points')`,
  )
  return views.length === 3
}

function doubtsOfPoints(trees: readonly unknown[]): Note[] {
  const asked = comparedTexts(trees, 'metric').includes(price) && tablesIn(trees).includes('points')
  return asked ? [{ code: 'price-view', subject: price }] : []
}

async function doubtsOfJoins(engine: Engine, trees: readonly unknown[], known: Known): Promise<Note[]> {
  const calls = [...callsIn(trees)].filter(({ name }) => joins.has(name))
  const asked = calls.flatMap((call): Asked[] => {
    const { places, named } = argumentsOf(call)
    const [names = [], [interval] = []] = call.name === 'resample' ? [places[0]] : [places[1], places[2]]
    const [currency, exchange, network, component] = [...dimensions, 'component'].map((name) => named[name]?.[0])
    const rest = { interval, assets: [], component, everywhere: true, dimensions: { currency, exchange, network } }
    return names.map((name) => ({ name, ...rest }))
  })
  return reasons(engine, asked, known)
}

/** Why each of these may have told nothing, as far as anything can be said. */
async function reasons(engine: Engine, asked: readonly Asked[], known: Known): Promise<Note[]> {
  const found: Note[] = []
  for (const one of asked) {
    const why = await whyEmpty(engine, one, known)
    if (why !== undefined) found.push(why)
  }
  return found
}

/** Texts that look like a path and are none. */
function doubtsOfPaths(trees: readonly unknown[], known: Known): Note[] {
  return textsIn(trees).flatMap((text) => {
    const [path = ''] = text.split('#')
    const strange = /^[a-z0-9_]+\/[a-z0-9_]+$/i.test(path) && !known.has(path)
    return strange ? [unknownMetric(path, known)] : []
  })
}

/** What a WHERE compares the columns of `points` with. */
async function doubtsOfFilters(engine: Engine, trees: readonly unknown[], known: Known): Promise<Note[]> {
  const metrics = comparedTexts(trees, 'metric').filter((metric) => metric !== price && known.has(metric))
  const found: Note[] = []
  for (const name of metrics) {
    const held = await heldOf(engine, name)
    if (held.length === 0) found.push(nothingOf(name))
    else
      for (const column of ['interval', 'asset', ...dimensions] as const) {
        const there = distinct(held.map((row) => row[column]))
        const lost = comparedTexts(trees, column).find((value) => !there.includes(value))
        if (lost === undefined) continue
        found.push(notHeld(name, column, lost, there))
        break
      }
  }
  return found
}

async function doubtsOfRegistry(engine: Engine, trees: readonly unknown[]): Promise<Note[]> {
  if (!(await readsRegistry(engine, trees))) return []
  const [row] = await engine.rows('SELECT CAST(min(known_since) AS VARCHAR) AS start FROM registry_start')
  const start = row?.['start']
  const subject = 'registry'
  return [
    typeof start === 'string'
      ? { code: 'before-registry', subject, figures: { start } }
      : { code: 'no-registry', subject },
  ]
}

/** Texts that are the name of an asset but for their case. */
async function doubtsOfCase(engine: Engine, trees: readonly unknown[]): Promise<Note[]> {
  const texts = textsIn(trees)
  if (texts.length === 0) return []
  const rows = await engine.rows<{ asset: string }>(
    `SELECT DISTINCT asset FROM points WHERE lower(asset) IN (${texts.map((text) => quote(text.toLowerCase())).join(', ')})`,
  )
  const assets = rows.map(({ asset }) => asset)
  return texts.flatMap((text) => {
    const same = assets.some((asset) => asset.toLowerCase() === text.toLowerCase())
    return same && !assets.includes(text) ? [{ code: 'other-case', subject: text, ...near(text, assets) }] : []
  })
}

/** Why a metric may have told nothing of these assets; undefined where the lake just had nothing to tell. */
async function whyEmpty(engine: Engine, asked: Asked, known: Known): Promise<Note | undefined> {
  const [path = '', named] = asked.name.split('#', 2)
  const pointer = named ?? asked.component
  if (!known.has(path)) return unknownMetric(path, known)
  const all = await heldOf(engine, path === price ? priced : path)
  if (all.length === 0) return nothingOf(path)
  const any = asked.interval === undefined || asked.interval === '*'
  const held = all.filter(({ interval }) => any || interval === asked.interval)
  const { interval = '' } = asked
  if (held.length === 0)
    return {
      code: 'no-interval',
      subject: path,
      figures: { interval },
      ...near(interval, distinct(all.map((one) => one.interval))),
    }
  const own = distinct(held.map(({ asset }) => asset))
  const lost = asked.assets.find((asset) => !own.includes(asset))
  if (lost !== undefined) return notHeld(path, 'asset', lost, own)
  for (const dimension of path === price ? [] : dimensions) {
    const wanted = asked.dimensions[dimension] ?? known.get(path)?.[dimension] ?? undefined
    const there = distinct(held.map((row) => row[dimension]))
    if (there.length > 0 && wanted !== undefined && wanted !== '*' && !there.includes(wanted))
      return notHeld(path, dimension, wanted, there)
  }
  return asked.everywhere && path !== price ? whyNull(engine, path, pointer) : undefined
}

/** Whether a metric of objects was asked without a part of them, or for one that there is not. */
async function whyNull(engine: Engine, path: string, pointer: string | undefined): Promise<Note | undefined> {
  const rows = await engine.rows<{ component: string }>(
    `SELECT DISTINCT component FROM (SELECT component FROM components WHERE metric = ${quote(path)} LIMIT 5000) ORDER BY 1`,
  )
  const known = rows.map(({ component }) => component)
  if (known.length === 0)
    return pointer === undefined ? undefined : { code: 'plain-numbers', subject: path, figures: { component: pointer } }
  if (pointer === undefined)
    return { code: 'whole-object', subject: path, there: known.slice(0, 2).map((part) => `${path}#${part}`) }
  if (known.includes(pointer)) return undefined
  return { code: 'no-component', subject: path, figures: { component: pointer }, ...near(pointer, known) }
}

type Held = Omit<SeriesName, 'metric'>

async function heldOf(engine: Engine, metric: string): Promise<readonly Held[]> {
  return engine.rows<Held & Row>(
    `SELECT DISTINCT "interval", asset, currency, exchange, network FROM points WHERE metric = ${quote(metric)}`,
  )
}

function nothingOf(subject: string): Note {
  return { code: 'nothing-held', subject }
}

function unknownMetric(subject: string, known: Known): Note {
  const meant = nearPaths(subject, [...known.keys()])
  return { code: 'unknown-metric', subject, ...(meant.length > 0 && { near: meant }) }
}

/** A metric that is there, but not of that asset, or with that interval or dimension. */
function notHeld(
  subject: string,
  column: 'asset' | 'interval' | (typeof dimensions)[number],
  value: string,
  there: readonly string[],
): Note {
  const meant = near(value, there)
  if (column === 'asset') return { code: 'no-asset', subject, figures: { asset: value }, ...meant }
  return { code: 'no-dimension', subject, figures: { dimension: column, value }, ...meant }
}

/** What may have been meant, else some of what there is. */
function near(word: string, known: readonly string[]): Pick<Note, 'near' | 'there'> {
  const meant = known.find((name) => name.toLowerCase() === word.toLowerCase()) ?? suggestion(word, known)
  if (meant !== undefined) return { near: [meant] }
  return known.length === 0 ? {} : { there: known.slice(0, 6) }
}

function distinct(values: readonly (string | null | undefined)[]): readonly string[] {
  return [...new Set(values.filter((value) => typeof value === 'string'))].toSorted()
}
