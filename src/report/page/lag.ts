import type { StatusPage } from '../status-page.ts'
import { type Html, html } from './html.ts'
import { brief, percent, several, whole } from '../../words/figures.ts'

const width = 720
const height = 180
const floor = 150

/** All arrivals by how much of their rule's lag they took; what stands right of 1 the rule did not foresee. */
export function lagSection({ lagBins: bins, readable }: StatusPage): Html {
  if (!readable) return html`<p class="bad">A data file cannot be read. <code>pitlake doctor</code> names it.</p>`
  const total = bins.reduce((sum, bin) => sum + bin.points, 0)
  if (total === 0)
    return html`<p class="none">No arrival has been seen: the provider's points carry no clock, and none came late.</p>`
  const late = bins.filter((bin) => bin.from >= 0.999).reduce((sum, bin) => sum + bin.points, 0)
  const most = bins.reduce((top, bin) => Math.max(top, bin.points), 1)
  const [left, right] = [Math.min(0.01, bins[0]?.from ?? 0.01), Math.max(100, bins.at(-1)?.to ?? 100)].map(Math.log10)
  const x = (ratio: number) => ((Math.log10(ratio) - (left ?? 0)) / ((right ?? 1) - (left ?? 0))) * (width - 2) + 1
  const y = (points: number) => floor - (floor - 14) * Math.sqrt(points / most)
  const words = `${percent(total - late, total)} of ${whole(total)} arrivals came by the instant that their rule gives; ${whole(late)} came later.`
  return html`<p>${words}${late > 0 && ' Those are dated by the clock that saw them, not by the rule.'}</p>
<svg class="chart" role="img" viewBox="0 0 ${width} ${height}"><title>Arrival lag divided by the rule’s lag</title><desc>${words}</desc>
${bins.map((bin) => html`<rect class="${bin.from >= 0.999 ? 'late' : 'intime'}" x="${x(bin.from).toFixed(1)}" y="${y(bin.points).toFixed(1)}" width="${Math.max(1, x(bin.to) - x(bin.from) - 1).toFixed(1)}" height="${(floor - y(bin.points)).toFixed(1)}"><title>${label(bin.from)} to ${label(bin.to)} of the rule: ${several(bin.points, 'point')}</title></rect>`)}
<line class="base" x1="0" x2="${width}" y1="${floor}" y2="${floor}"/>
<line class="rule" x1="${x(1).toFixed(1)}" x2="${x(1).toFixed(1)}" y1="4" y2="${floor + 6}"/>
<text class="rulet" x="${(x(1) + 6).toFixed(1)}" y="14">the rule</text>
${[0.01, 0.1, 1, 10, 100, 1000].filter((mark) => x(mark) >= 0 && x(mark) <= width).map((mark) => html`<text class="t" x="${Math.min(width - 14, Math.max(12, x(mark))).toFixed(1)}" y="${floor + 20}" text-anchor="middle">${label(mark)}</text>`)}
</svg>
<p class="small">Lag divided by the rule’s lag, logarithmic. Heights by square root, so that one late point in ten thousand shows; the tallest bar holds ${brief(most)} points.</p>`
}

function label(ratio: number): string {
  const text =
    ratio >= 10 ? ratio.toFixed(0) : ratio >= 1 ? ratio.toFixed(1) : ratio >= 0.1 ? ratio.toFixed(2) : ratio.toFixed(3)
  return `${Number(text)}×`
}
