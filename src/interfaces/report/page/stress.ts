import type { Stressed } from '../../../trust/results/stress.ts'
import { briefFigure, describeRun, stressWords } from '../../../trust/results/stress-verdict.ts'
import { type Html, html } from './html.ts'

const width = 760
const row = 24
const left = 300
const right = 90

/** A bar of the picture. */
interface StressBar {
  readonly words: string
  /** The statistic; null if it is not a number. */
  readonly statistic: number | null
  readonly falls: boolean
}

/** Draws the statistics of all runs as bars from one zero, as a separate picture (SVG). */
export function stressPicture({ statistic, runs, verdict, reason }: Stressed, file: string): string {
  const shownRuns = runs.filter(({ kind }) => kind !== 'version')
  const bars = [
    { words: 'as it is', statistic, falls: false },
    ...shownRuns.map((run) => ({ words: describeRun(run), statistic: run.statistic, falls: run.falls })),
    ...runs
      .filter(({ kind }) => kind === 'version')
      .map((run) => ({ words: describeRun(run), statistic: run.statistic, falls: false })),
  ]
  const statistics = bars.flatMap((bar) => (bar.statistic === null ? [] : [bar.statistic]))
  const low = Math.min(0, ...statistics)
  const high = Math.max(0, ...statistics)
  const x = (value: number): number => left + ((value - low) / (high - low || 1)) * (width - left - right)
  const line = ({ words, statistic: value, falls }: StressBar, i: number): Html => {
    const y = 44 + i * row
    const name = html`<text x="${left - 12}" y="${y + 15}" text-anchor="end">${words}</text>`
    if (value === null) return html`${name}<text x="${left}" y="${y + 15}">none</text>`
    const from = Math.min(x(0), x(value))
    const to = Math.max(x(0), x(value))
    return html`${name}<rect x="${from.toFixed(1)}" y="${y + 3}" width="${Math.max(1, to - from).toFixed(1)}" height="${row - 7}" fill="${falls ? '#bf4f3a' : '#2b6491'}"/>
<text x="${(to + 6).toFixed(1)}" y="${y + 15}">${briefFigure(value)}</text>`
  }
  const height = 56 + bars.length * row
  const title = `${file}: ${verdict}${reason === null ? '' : `, ${reason}`}`
  return html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#22303c">
<title>${title}</title><rect width="${width}" height="${height}" fill="white"/>
<text x="12" y="24" font-weight="600">${file}: ${stressWords[verdict]}</text>
${bars.map(line)}
<line x1="${x(0).toFixed(1)}" x2="${x(0).toFixed(1)}" y1="40" y2="${height - 8}" stroke="#22303c"/>
</svg>
`.markup
}
