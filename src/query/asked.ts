import { type Engine, quote, quoteList, type Row } from '../store/engine.ts'
import type { Parameters } from '../store/sql.ts'
import { type AskedMetric, askedMetric, type AskedNotes, aside, type Beyond } from './doubts.ts'
import type { Empty } from './filled.ts'
import { admit } from './gate.ts'
import { type PanelSpec, usualInterval } from './panel.ts'
import type { PointsFilter, Standard } from './points.ts'
import { Remembered } from './remembered.ts'
import { statementsOf } from './statements.ts'

/** What statements ask, as `question_asked` of the lake tells it. */
export interface AskedSql {
  readonly tables: readonly string[]
  readonly texts: readonly string[]
  /** Whether the answer counts something. */
  readonly counts: boolean
  readonly metrics: readonly AskedMetric[]
  readonly joins: readonly AskedJoin[]
}

/** A call of a join: what it asks of its metrics, and the statements that tell of its decisions; null where these are not found. */
interface AskedJoin {
  readonly metrics: readonly AskedMetric[]
  readonly extent: string | null
  /** Null where decisions later than what is settled get none. */
  readonly beyond: string | null
}

/** A join with what its decisions told. */
interface Decided {
  readonly metrics: readonly AskedMetric[]
  readonly beyond: readonly Beyond[]
}

/** It reads nothing but the words. */
const words = new Remembered<AskedSql | null>()

/** What the words of a script ask. */
export async function askedInSql(engine: Engine, sql: string, parameters: Parameters = []): Promise<AskedSql> {
  const first = Array.isArray(parameters) ? 1 : undefined
  const names = Object.entries<unknown>(parameters).map(
    ([name, value]) => [first ? Number(name) + first : name, value] as const,
  )
  const texts = Object.fromEntries(names.filter(([, value]) => typeof value === 'string'))
  const list = quoteList(statementsOf(sql).map(({ text }) => text))
  const question = `FROM question_asked(${list}, ${quote(JSON.stringify(texts))})`
  const asked = await aside(async () =>
    words.of(engine, question, async () => {
      const [row] = await engine.rows<{ asked: string }>(question)
      return JSON.parse(row?.asked ?? 'null') as AskedSql | null
    }),
  )
  return asked ?? { tables: [], texts: [], counts: false, metrics: [], joins: [] }
}

/** Asks the decisions of joins how far they reach, and where one may be late, how many are. */
export async function decidedBy(
  engine: Engine,
  joins: readonly AskedJoin[],
  mark: string | undefined,
): Promise<readonly Decided[]> {
  const found: Decided[] = []
  for (const { metrics, extent, beyond } of joins) {
    const told = await aside(async () => {
      if (extent === null) return undefined
      if (mark !== undefined) await admit(engine, extent, undefined, mark)
      const [row] = await engine.rows<{ last: string | null; assets: string; late: boolean }>(extent)
      const late = row?.late === true && beyond !== null ? await engine.rows<Beyond & Row>(beyond) : []
      const own = { last: row?.last ?? null, asset: JSON.parse(row?.assets ?? '[]') as readonly string[] }
      return { metrics: metrics.map((one) => ({ ...one, ...own })), beyond: late }
    })
    found.push(told ?? { metrics, beyond: [] })
  }
  return found
}

/** What the lake is asked about a query that told nothing. */
export function doubtsOfSql({ tables, texts, metrics: compared }: AskedSql, decided: readonly Decided[]): AskedNotes {
  const metrics = [...decided.flatMap((one) => one.metrics), ...compared]
  const assets = new Set(metrics.flatMap(({ asset }) => asset))
  return { metrics, texts: texts.filter((text) => !assets.has(text)), tables }
}

/** What a panel asked of the metrics that told nothing of some assets. */
export function doubtsOfPanel(spec: PanelSpec, empty: readonly Empty[], last: string | null): AskedNotes {
  const field = ['v', 't', 'available_at', 'age'].find((one) => (spec.fields ?? ['v']).some((name) => name === one))
  const { interval = usualInterval, component = null } = spec
  const metrics = spec.metrics.flatMap(({ name, metric }) => {
    const lost = empty.find(
      ({ column }) => field !== undefined && column === (field === 'v' ? name : `${name}.${field}`),
    )
    if (lost === undefined || lost.zero === true) return []
    const asset = lost.assets.filter((one) => one !== '')
    const rest = { asset, component, everywhere: lost.everywhere, last, ...sides(spec) }
    return [askedMetric(metric, { interval: [interval], ...rest })]
  })
  return { metrics }
}

/** What a filter of points asked of each metric. */
export function doubtsOfFilter(filter: PointsFilter, standards: readonly Standard[]): AskedNotes {
  const asset = [filter.assets ?? []].flat()
  const rest = { asset, times: filter.since !== undefined || filter.until !== undefined, ...sides(filter) }
  const metrics = [filter.metrics ?? '*'].flat().map((name) => {
    const interval = filter.interval ?? standards.find(({ metric }) => metric === name)?.interval
    return askedMetric(name, { interval: typeof interval === 'string' ? [interval] : [], ...rest })
  })
  return { metrics }
}

type Side = 'currency' | 'exchange' | 'network'

function sides({
  currency,
  exchange,
  network,
}: { readonly [name in Side]?: string | undefined }): Pick<AskedMetric, Side> {
  const list = (name: string | undefined): readonly string[] => (name === undefined ? [] : [name])
  return { currency: list(currency), exchange: list(exchange), network: list(network) }
}
