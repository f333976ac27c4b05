import type { UniverseStep } from '../../../sources/registry/status.ts'
import type { StatusPage } from '../status-page.ts'
import { day } from '../../../base/time.ts'
import { html, type Html } from './html.ts'
import { instant, moment, several, formatCount } from '../../../base/figures.ts'

const width = 720
const height = 226
const top = 22
const floor = 122
const middle = 166

/**
 * Draws products as the lake knew them over time: active and retired stacked, and below them arrivals and departures.
 */
export function universeSection(page: StatusPage): Html {
  const { universe, standing } = page
  const first = universe[0]
  const last = universe.at(-1)
  if (!first || !last)
    return html`<p class="none">The lake has no registry yet. <code>pitlake registry snapshot</code> stores it.</p>`
  const sum = (pick: (step: UniverseStep) => number) => universe.slice(1).reduce((total, step) => total + pick(step), 0)
  const words =
    `${formatCount(last.active)} active and ${formatCount(last.retired)} retired products; since ` +
    `${moment(first.at)} ${formatCount(sum((s) => s.created))} created, ` +
    `${formatCount(sum((s) => s.newlyRetired))} retired, ${formatCount(sum((s) => s.removed))} removed.`
  const records = Object.entries(standing.registry.records).map(([name, count]) => `${name} ${formatCount(count)}`)
  return html`<p>${words}</p>
${drawn(universe, page.madeAt, words)}
<p class="small">${records.join(' · ')}</p>
${asTable(universe)}`
}

function drawn(steps: readonly UniverseStep[], now: number, words: string): Html {
  const begin = steps[0]?.at ?? now
  const until = Math.max(now, (steps.at(-1)?.at ?? now) + 1, begin + day)
  const x = (at: number) => ((at - begin) / (until - begin)) * width
  const most = steps.reduce((top, step) => Math.max(top, step.active + step.retired), 1)
  const y = (count: number) => floor - (count / most) * (floor - top)
  const moves = steps.slice(1)
  const tallest = moves.reduce((top, s) => Math.max(top, s.created, s.newlyRetired + s.removed), 1)
  const bar = (count: number) => (count / tallest) * 28
  return html`<svg class="chart" role="img" viewBox="0 0 ${width} ${height}"><title>Registry universe over time</title><desc>${words}</desc>
<path class="retired" d="${area(
    steps,
    x,
    (s) => y(s.active + s.retired),
    (s) => y(s.active),
    until,
  )}"/>
<path class="active" d="${area(
    steps,
    x,
    (s) => y(s.active),
    () => floor,
    until,
  )}"/>
<line class="base" x1="0" x2="${width}" y1="${floor}" y2="${floor}"/>
<line class="base" x1="0" x2="${width}" y1="${middle}" y2="${middle}"/>
${moves.map(
  (s) =>
    html`<g><title>${moment(s.at)}: ${s.created} created, ${s.newlyRetired} retired, ${s.removed} removed</title>${[
      s.created > 0 &&
        html`<rect class="created" x="${(x(s.at) - 1.5).toFixed(1)}" y="${(middle - bar(s.created)).toFixed(1)}" width="3" height="${bar(s.created).toFixed(1)}"/>`,
      s.newlyRetired > 0 &&
        html`<rect class="wentretired" x="${(x(s.at) - 1.5).toFixed(1)}" y="${middle}" width="3" height="${bar(s.newlyRetired).toFixed(1)}"/>`,
      s.removed > 0 &&
        html`<rect class="removed" x="${(x(s.at) - 1.5).toFixed(1)}" y="${(middle + bar(s.newlyRetired)).toFixed(1)}" width="3" height="${bar(s.removed).toFixed(1)}"/>`,
    ]}</g>`,
)}
<text class="t" x="0" y="${top - 6}">${formatCount(most)} products</text>
<text class="t" x="0" y="${height - 4}">${instant(begin).slice(0, 10)}</text><text class="t" x="${width}" y="${height - 4}" text-anchor="end">${instant(until).slice(0, 10)}</text>
</svg>
<div class="legend" aria-hidden="true"><span><i class="k u-active"></i>active</span><span><i class="k u-retired"></i>retired</span><span><i class="k u-created"></i>created</span><span><i class="k u-removed"></i>removed</span><span>above: the universe; below: created upwards, retired and removed downwards</span></div>`
}

/** Draws a stepped area: each state lasts until the next. */
function area(
  steps: readonly UniverseStep[],
  x: (at: number) => number,
  upper: (step: UniverseStep) => number,
  lower: (step: UniverseStep) => number,
  until: number,
): string {
  const ends = steps.map((_, index) => x(steps[index + 1]?.at ?? until))
  const present = steps.map(
    (s, i) => `${i === 0 ? 'M' : 'L'}${x(s.at).toFixed(1)} ${upper(s).toFixed(1)}H${(ends[i] ?? 0).toFixed(1)}`,
  )
  const back = steps
    .map((s, i) => `L${(ends[i] ?? 0).toFixed(1)} ${lower(s).toFixed(1)}H${x(s.at).toFixed(1)}`)
    .toReversed()
  return `${present.join('')}${back.join('')}z`
}

const mostShown = 60

function asTable(steps: readonly UniverseStep[]): Html {
  const rows = steps.slice(-mostShown).toReversed()
  return html`<details><summary>${several(rows.length, 'change')} as a table</summary><div class="scroll" tabindex="0"><table><thead><tr><th scope="col">at</th><th scope="col" class="n">active</th><th scope="col" class="n">retired</th><th scope="col" class="n">+ created</th><th scope="col" class="n">retired</th><th scope="col" class="n">− removed</th></tr></thead><tbody>
${rows.map(
  (
    s,
  ) => html`<tr><td>${moment(s.at)}</td><td class="n">${formatCount(s.active)}</td><td class="n">${formatCount(s.retired)}</td><td class="n">${formatCount(s.created)}</td><td class="n">${formatCount(s.newlyRetired)}</td><td class="n">${formatCount(s.removed)}</td></tr>
`,
)}</tbody></table></div></details>`
}
