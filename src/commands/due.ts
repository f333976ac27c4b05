import { ruleFor } from '../catalog/availability.ts'
import type { SeriesName } from '../catalog/series.ts'
import { formatInstant, type Instant } from '../time.ts'
import { type DueBy, type NextPoint, nextPoints, registryDue } from '../watch/due.ts'
import { lagsNow, lakeNow } from '../watch/lake.ts'
import { readContext, type selectionOptions, selectionsOf } from './context.ts'
import { span } from '../words/figures.ts'
import { wrapped } from '../words/table.ts'
import type { Answer, Deps, Input } from './spec.ts'

/** One series of the list, as scripts read it; instants are ISO text. */
interface DueRow extends SeriesName {
  readonly due: string
  readonly overdue: boolean
  readonly t: string | null
  readonly by: DueBy
  /** Of the rule in force for the point. */
  readonly basis: string
  readonly observations: number
  /** When `watch` asks for it. */
  readonly poll: string
}

/** What comes next, and when: names are relied on by scripts. */
export interface DueList {
  readonly at: string
  readonly series: number
  readonly overdue: number
  readonly due: readonly DueRow[]
  /** When the registry is to be polled next; null where the lake has none of it. */
  readonly registry: string | null
}

/** `plan --due`: the next point of each series, by its rule or by the lag learnt so far; asks nobody. */
export async function answerDue(
  input: Input<typeof selectionOptions>,
  deps: Deps,
  at: Instant,
): Promise<Answer<DueList>> {
  const { settings, catalogue } = await readContext(input, deps)
  const selections = await selectionsOf(input, { settings, catalogue })
  const { wanted, held, registryPolled } = await lakeNow(settings.data, catalogue, selections, at)
  const learnt = await lagsNow(settings.data, catalogue, wanted)
  const points = nextPoints(wanted, { held, learnt, weekStart: settings.metrics.weekStart, at })
  const registry = registryPolled === null ? null : registryDue(registryPolled, at)
  const document: DueList = {
    at: formatInstant(at),
    series: wanted.length,
    overdue: points.filter(({ due }) => due < at).length,
    due: points.map((point) => rowOf(point, at)),
    registry: registry === null ? null : formatInstant(registry),
  }
  return { document, words: () => inWords(points, registry, at) }
}

function rowOf({ series, endpoint, interval, t, due, by, observations, poll }: NextPoint, at: Instant): DueRow {
  const { metric, asset, currency, exchange, network } = series
  const { basis } = ruleFor(endpoint.rules[interval], t ?? Infinity)
  const instants = { due: formatInstant(due), t: t === null ? null : formatInstant(t), poll: formatInstant(poll) }
  const overdue = due < at
  return { ...instants, overdue, metric, asset, interval, currency, exchange, network, by, basis, observations }
}

const reasons: Readonly<Record<DueBy, string>> = {
  rule: 'by the rule',
  told: 'by the lag that the provider tells',
  learnt: 'by the lag learnt',
  new: 'never asked',
  quiet: 'nothing comes, asked daily',
  refused: 'refused, asked again',
}

/** A line for each instant with what is due then, and below it the metrics with their assets. */
function inWords(points: readonly NextPoint[], registry: Instant | null, at: Instant): string {
  const headed = Map.groupBy(points, ({ due, interval, t, by }) => {
    const of = t === null ? interval : `${interval} of ${short(t)}`
    return `${short(due)}  ${away(due - at).padEnd(12)} ${of}, ${reasons[by]}`
  })
  const blocks = [...headed].map(([head, own]) => {
    const metrics = Map.groupBy(own, ({ series }) => series.metric)
    const lines = [...metrics].flatMap(([metric, all]) => {
      const assets = [...new Set(all.map(({ series }) => series.asset))].join(', ')
      const line = `  ${metric}  ${assets}`
      return line.length <= 80 ? [line] : [`  ${metric}`, ...wrapped(`      ${assets}`, 6)]
    })
    return `${[head, ...lines].join('\n')}\n`
  })
  const polled = registry === null ? [] : [`${short(registry)}  ${away(registry - at).padEnd(12)} registry\n`]
  return [...blocks, ...polled].join('')
}

const short = (instant: Instant): string => `${formatInstant(instant).slice(0, 16).replace('T', ' ')}Z`

function away(after: number): string {
  return after < 0 ? `${span(-after)} ago` : after === 0 ? 'now' : `in ${span(after)}`
}
