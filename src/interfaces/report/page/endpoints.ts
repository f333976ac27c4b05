import type { EndpointFacts, EndpointLag, StatusPage } from '../status-page.ts'
import { html, type Html, inlineJson } from './html.ts'
import { instant, monthName, percent, several, span, formatCount } from '../../../base/figures.ts'

/** Shares from which a month takes a tone, darkest first; below the last one nothing that is due is stored. */
const tones = [1, 0.97, 0.9, 0.5, Number.MIN_VALUE] as const

/** Chooses the tone of a month: `f` failed, `h0` full … `h4` little, `h5` nothing; undefined if nothing is due. */
export function toneOf(due: number, stored: number, failed: number): string | undefined {
  if (due === 0) return undefined
  if (failed > 0) return 'f'
  const found = tones.findIndex((least) => stored / due >= least)
  return `h${found < 0 ? tones.length : found}`
}

/** Draws the map of all endpoints by month, with freshness and arrival next to each. */
export function endpointSection(page: StatusPage): Html {
  if (page.endpoints.length === 0) return html`<p class="none">No points are stored yet.</p>`
  const families = Map.groupBy(page.endpoints, ({ metric }) => metric.split('/')[0] ?? '')
  const first = page.endpoints[0]
  return html`
<div class="legend" aria-hidden="true">
  <span><i class="k h0"></i>all that is due</span><span><i class="k h1"></i>≥ 97 %</span><span><i class="k h2"></i>≥ 90 %</span>
  <span><i class="k h3"></i>≥ 50 %</span><span><i class="k h4"></i>less</span><span><i class="k h5"></i>nothing</span>
  <span><i class="k f"></i>failed</span><span class="lk"><i class="kl"></i>5–95 % of arrivals</span>
  <span class="lk"><i class="km"></i>rule</span><span class="lk"><i class="kx"></i>1 % or more later than the rule</span>
</div>
<p class="readout" id="readout" role="status">Point at a month, or move with the arrow keys.</p>
<div class="map" id="map" role="group" aria-label="Coverage by endpoint and month, freshness, arrival lag">
  <div class="row head" aria-hidden="true">
    <span class="name">endpoint</span>
    <span class="heat axis">${years(page)}</span>
    <span class="fresh">newest point</span>
    <span class="lag axis">${lagTicks()}</span>
  </div>
${[...families].map(
  ([family, rows]) => html`  <h3 class="family">${family}<small>${rows.length}</small></h3>
${rows.map((row) => endpointRow(page, row, row === first))}`,
)}
</div>
<script type="application/json" id="months">${inlineJson({
    first: page.firstMonth,
    rows: page.endpoints.map(({ due, held, failed }) => [due, held, failed.some((n) => n > 0) ? failed : 0]),
  })}</script>`
}

function endpointRow(page: StatusPage, row: EndpointFacts, first: boolean): Html {
  const family = row.metric.split('/')[0] ?? ''
  const shortName = row.metric.slice(family.length + 1)
  const stem = shortName.endsWith('_pit') ? shortName.slice(0, -4) : shortName
  return html`  <div class="row" role="group" aria-label="${row.metric}" tabindex="${first ? 0 : -1}" data-r="${page.endpoints.indexOf(row)}">
    <span class="name" title="${row.metric}">${stem}</span>
    <span class="heat">${heat(page, row)}</span>
    ${freshness(row)}
    <span class="lag">${row.lag ? strip(row.lag) : html`<em>not seen</em>`}</span>
  </div>
`
}

/** Draws the months of one endpoint as one picture; adjacent months of one tone are one shape. */
function heat(page: StatusPage, row: EndpointFacts): Html {
  const shapes = new Map<string, string>()
  let from = 0
  for (let month = 1; month <= page.months; month++) {
    const tone = toneAt(row, from)
    if (month < page.months && toneAt(row, month) === tone) continue
    if (tone !== undefined) shapes.set(tone, `${shapes.get(tone) ?? ''}M${from} 0h${month - from}v1h${from - month}z`)
    from = month
  }
  const summary = describeMonths(page, row)
  const paths = [...shapes].map(([tone, d]) => html`<path class="${tone}" d="${d}"/>`)
  return html`<svg role="img" viewBox="0 0 ${page.months} 1" preserveAspectRatio="none"><title>${summary}</title>${paths}</svg>`
}

function toneAt(row: EndpointFacts, month: number): string | undefined {
  return toneOf(row.due[month] ?? 0, row.held[month] ?? 0, row.failed[month] ?? 0)
}

/** Describes the row in a sentence, for readers who do not see it. */
function describeMonths(page: StatusPage, row: EndpointFacts): string {
  const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0)
  const due = sum(row.due)
  const start = row.due.findIndex((n) => n > 0)
  const short = row.due.filter((n, month) => n > (row.held[month] ?? 0)).length
  const range = `${monthName(page.firstMonth + Math.max(0, start))} to ${monthName(page.firstMonth + page.months - 1)}`
  const holes = short === 0 ? 'no month short' : `${several(short, 'month')} short`
  return (
    `${row.metric}: ${several(row.series, 'series', 'series')}, ${range}, ${percent(sum(row.held), due)} of ` +
    `${formatCount(due)} due points, ${holes}`
  )
}

/** Draws the years over the columns. */
function years(page: StatusPage): Html[] {
  const marks: Html[] = []
  for (let month = 0; month < page.months; month++) {
    const index = page.firstMonth + month
    if (index % 12 !== 0 && !(month === 0 && page.months < 12)) continue
    const year = 1970 + Math.floor(index / 12)
    const every = page.months > 200 ? 5 : page.months > 132 ? 2 : 1
    if (year % every !== 0) continue
    const left = ((month / page.months) * 100).toFixed(2)
    if (page.months - month >= 5) marks.push(html`<i style="left:${left}%">${year}</i>`)
  }
  return marks
}

function freshness({ fresh, overdue, newest }: EndpointFacts): Html {
  const parts = [
    fresh.behind > 0 && `${fresh.behind} behind ${overdue > 0 ? span(overdue) : ''}`.trim(),
    fresh.stopped > 0 && `${fresh.stopped} stopped`,
    fresh.pending > 0 && fresh.behind + fresh.stopped === 0 && `${fresh.pending} pending`,
  ].filter((part) => part !== false)
  const worst = fresh.stopped > 0 ? 'stopped' : fresh.behind > 0 ? 'behind' : fresh.pending > 0 ? 'pending' : 'fresh'
  const text = parts.length === 0 ? 'fresh' : parts.join(', ')
  const last = newest === null ? '' : instant(newest)
  const counts = `${fresh.fresh} fresh, ${fresh.pending} pending, ${fresh.behind} behind, ${fresh.stopped} stopped`
  // There is room for one: how late it is for a late series, how far it goes for all others.
  const shown = fresh.behind > 0 || fresh.stopped > 0 ? text : html`<b>${last}</b> ${text}`
  return html`<span class="fresh ${worst}" title="${counts}${last === '' ? '' : `; newest ${last}`}">${shown}</span>`
}

const shortest = 30
const longest = 30 * 86_400

/** Places a lag on the logarithmic axis of half a minute to thirty days, 0 to 100. */
export function lagAt(seconds: number): number {
  const clipped = Math.min(longest, Math.max(shortest, seconds))
  return (Math.log(clipped / shortest) / Math.log(longest / shortest)) * 100
}

const ticks: readonly (readonly [number, string])[] = [
  [60, '1m'],
  [600, '10m'],
  [3600, '1h'],
  [86_400, '1d'],
  [604_800, '7d'],
]

function lagTicks(): Html[] {
  return ticks.map(([seconds, text]) => html`<i style="left:${lagAt(seconds).toFixed(2)}%">${text}</i>`)
}

/** Draws one endpoint's arrivals: middle, bulk, tail and the rule that they are measured by. */
function strip(lag: EndpointLag): Html {
  const [p05, p50, p95, p99, max] = [lag.p05, lag.p50, lag.p95, lag.p99, lag.max].map(lagAt)
  const rule = lag.rule === null ? null : lagAt(lag.rule)
  const bar = (cls: string, from = 0, to = 0, top = 0.3, height = 0.4) =>
    to > from &&
    html`<rect class="${cls}" x="${from.toFixed(2)}" y="${top}" width="${(to - from).toFixed(2)}" height="${height}"/>`
  const edge = rule ?? 100
  const words = [
    `median ${span(lag.p50)}, 95 % within ${span(lag.p95)}, 99 % within ${span(lag.p99)}, latest ${span(lag.max)}`,
    lag.rule === null ? 'no rule' : `rule ${span(lag.rule)} (${lag.basis})`,
    `${formatCount(lag.late)} of ${formatCount(lag.points)} later than the rule`,
  ]
  return html`<svg role="img" viewBox="0 0 100 1" preserveAspectRatio="none"><title>${words.join('; ')}</title>${[
    bar('tail', p95, max, 0.45, 0.1),
    bar('bulk', p05, Math.min(p95 ?? 0, edge)),
    bar('bulk x', Math.max(p05 ?? 0, edge), p95),
    bar('bulk x', Math.max(p95 ?? 0, edge), p99, 0.36, 0.28),
    html`<rect class="mid" x="${((p50 ?? 0) - 0.4).toFixed(2)}" y="0.12" width="0.8" height="0.76"/>`,
    rule !== null && html`<rect class="rule" x="${(rule - 0.35).toFixed(2)}" y="0" width="0.7" height="1"/>`,
  ]}</svg>`
}
