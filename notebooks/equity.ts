import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import * as Plot from '@observablehq/plot'
import { JSDOM } from 'jsdom'
import { type Lake, openLake } from '../src/index.ts'

/*
 * What is a slower desk worth? A portfolio of three coins is decided every Monday and Thursday at 06:00 UTC on what was
 * knowable then, and again by desks that need a day, three days and a week to act on what they know. `node equity.ts OUT` reads
 * the lake in PITLAKE_DATA (else ../data) and writes OUT/equity.html and two SVG files. The data are the sandbox's.
 */

interface Desk {
  readonly name: string
  /** Time needed to act. */
  readonly latency: string
  readonly colour: string
}

interface Curve {
  readonly desk: Desk
  readonly points: readonly { readonly ts: Date; readonly wealth: number; readonly drawdown: number }[]
  readonly sharpe: number
}

const day = 86_400
const desks: readonly Desk[] = [
  { name: 'at once', latency: '0s', colour: '#2b6491' },
  { name: 'a day later', latency: '1d', colour: '#3c8878' },
  { name: 'three days later', latency: '3d', colour: '#c79a3b' },
  { name: 'a week later', latency: '7d', colour: '#bf4f3a' },
]
const assets = ['BTC', 'ETH', 'SOL']
const since = '2022-01-03T06:00:00Z'
const until = '2026-07-16T00:00:00Z'
const perYear = 365 / 3.5

/** The decisions: Mondays and Thursdays at 06:00. */
function instants(): Date[] {
  const all: Date[] = []
  for (let ms = Date.parse(since); ms < Date.parse(until); ms += day * 1000)
    if ([1, 4].includes(new Date(ms).getUTCDay())) all.push(new Date(ms))
  return all
}

/** What a position is paid by: the price at the end of the day before each decision. This looks at `t`, for it is no signal. */
async function pricesByInstant(from: Lake): Promise<Map<string, number>> {
  const table = await from.sql(
    `SELECT asset, epoch_ms(t) + 86400000 AS ms, v FROM price_usd WHERE "interval" = '24h' AND v IS NOT NULL`,
  )
  return new Map(rowsOf(table).map((row) => [`${String(row['asset'])} ${Number(row['ms'])}`, Number(row['v'])]))
}

function rowsOf(table: Awaited<ReturnType<Lake['sql']>>): Readonly<Record<string, unknown>>[] {
  return table.toArray() as Readonly<Record<string, unknown>>[]
}

/** Long the coins that stand above the mean of their last eight prices, as the desk knew them, in equal parts. */
async function backtest(from: Lake, desk: Desk, prices: ReadonlyMap<string, number>): Promise<Curve> {
  const times = instants()
  const decisions = times.flatMap((ts) => assets.map((asset) => ({ asset, ts })))
  const known = await from.panel({
    decisions,
    metrics: ['price_usd'],
    interval: '24h',
    latency: desk.latency,
  })
  const seen = new Map(assets.map((asset) => [asset, [] as number[]]))
  const held: string[][] = times.map(() => [])
  for (const [index, row] of rowsOf(known).entries()) {
    const asset = String(row['asset'])
    const own = seen.get(asset) ?? []
    const price = row['price_usd'] as number | null
    if (price !== null) own.push(price)
    const recent = own.slice(-8)
    const mean = recent.reduce((sum, value) => sum + value, 0) / recent.length
    if (recent.length === 8 && price !== null && price > mean) held[Math.floor(index / assets.length)]?.push(asset)
  }
  return curveOf(desk, times, held, prices)
}

function curveOf(
  desk: Desk,
  times: readonly Date[],
  held: readonly string[][],
  prices: ReadonlyMap<string, number>,
): Curve {
  const priceAt = (asset: string, ts: Date): number | undefined =>
    prices.get(`${asset} ${ts.getTime() - 6 * 3_600_000}`)
  const points: Curve['points'][number][] = []
  const returns: number[] = []
  let wealth = 1
  let peak = 1
  for (const [index, ts] of times.entries()) {
    points.push({ ts, wealth, drawdown: wealth / peak - 1 })
    const next = times[index + 1]
    if (next === undefined) break
    let earned = 0
    for (const asset of held[index] ?? []) {
      const [from, to] = [priceAt(asset, ts), priceAt(asset, next)]
      if (from !== undefined && to !== undefined) earned += (to / from - 1) / assets.length
    }
    returns.push(earned)
    wealth *= 1 + earned
    peak = Math.max(peak, wealth)
  }
  const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length
  const variance = returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / returns.length
  return { desk, points, sharpe: (mean / Math.sqrt(variance)) * Math.sqrt(perYear) }
}

const look = {
  width: 860,
  marginLeft: 52,
  marginRight: 170,
  marginBottom: 32,
  style: { fontFamily: 'system-ui, sans-serif', fontSize: '12px', color: '#22303c', background: 'white' },
}

function wealthPicture(curves: readonly Curve[]): string {
  return svgOf({
    ...look,
    height: 360,
    y: {
      type: 'log',
      label: 'value of 1 invested (log)',
      grid: true,
      ticks: 6,
      tickFormat: (value: number) => String(value),
    },
    x: { label: null, type: 'utc' },
    marks: [
      Plot.ruleY([1], { stroke: '#8a96a3' }),
      ...curves.map(({ desk, points }) =>
        Plot.line(points, { x: 'ts', y: 'wealth', stroke: desk.colour, strokeWidth: 1.7 }),
      ),
      Plot.text(spread(curves), {
        x: 'ts',
        y: 'wealth',
        text: 'text',
        fill: 'colour',
        textAnchor: 'start',
        dx: 8,
        fontWeight: 600,
      }),
    ],
  })
}

/** A label at the end of each curve, far enough from its neighbours to be read. */
function spread(curves: readonly Curve[]): { ts: Date; wealth: number; text: string; colour: string }[] {
  const ends = curves.flatMap(({ desk, points, sharpe }) => {
    const last = points.at(-1)
    return last === undefined
      ? []
      : [{ ts: last.ts, wealth: last.wealth, text: `${desk.name}, ${sharpe.toFixed(1)}`, colour: desk.colour }]
  })
  const step = 1.07
  let least = 0
  return ends
    .toSorted((a, b) => a.wealth - b.wealth)
    .map((end) => {
      least = Math.max(end.wealth, least * step)
      return { ...end, wealth: least }
    })
}

function drawdownPicture(curves: readonly Curve[]): string {
  return svgOf({
    ...look,
    height: 420,
    marginLeft: 52,
    x: { label: null, type: 'utc' },
    y: { label: 'below the last peak (%)', grid: true, percent: true, ticks: 3 },
    fy: { label: null, domain: desks.map(({ name }) => name) },
    marks: curves.flatMap(({ desk, points }) => {
      const rows = points.map((point) => ({ ...point, desk: desk.name }))
      return [
        Plot.areaY(rows, { x: 'ts', y: 'drawdown', fy: 'desk', fill: desk.colour, fillOpacity: 0.3 }),
        Plot.line(rows, { x: 'ts', y: 'drawdown', fy: 'desk', stroke: desk.colour, strokeWidth: 1.2 }),
      ]
    }),
  })
}

function svgOf(options: Plot.PlotOptions): string {
  const { document } = new JSDOM('').window
  const drawn = Plot.plot({ ...options, document })
  const svg = drawn.tagName.toLowerCase() === 'svg' ? drawn : drawn.querySelector('svg')
  if (svg === null) throw new Error('the plot has no svg')
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  return svg.outerHTML
}

function page(curves: readonly Curve[], [wealth = '', drawdown = '']: readonly string[]): string {
  const rows = curves.map(({ desk, points, sharpe }) => {
    const worst = Math.min(...points.map((point) => point.drawdown))
    const grown = points.at(-1)?.wealth ?? 1
    return `<tr><td>${desk.name}</td><td>${sharpe.toFixed(2)}</td><td>${grown.toFixed(2)}</td><td>${(100 * worst).toFixed(0)} %</td></tr>`
  })
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>What is a slower desk worth?</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;color:#22303c;max-width:880px;margin:2em auto;padding:0 1em}
td,th{padding:.2em 1.4em .2em 0;text-align:left}.wide{overflow-x:auto}svg{display:block;width:100%;min-width:640px;height:auto}
@media(prefers-color-scheme:dark){body{color:#d8dee4;background:#14181d}svg{filter:invert(.91) hue-rotate(180deg)}}</style>
<h1>What is a slower desk worth?</h1>
<p>BTC, ETH and SOL, decided every Monday and Thursday at 06:00 UTC: hold, in equal parts, those whose latest knowable price
stands above the mean of the last eight prices seen. The four desks read the same lake and differ in <code>latency</code>
alone, the time they need to act. The world is the sandbox's: synthetic, with trends smoother than real ones, so
that the levels mean nothing; that the fastest desk leads is what to take along.</p>
<h2>Value of one invested, and Sharpe ratio</h2><div class="wide">${wealth}</div>
<h2>Below the last peak</h2><div class="wide">${drawdown}</div>
<div class="wide"><table><tr><th>desk acts</th><th>Sharpe</th><th>value of 1</th><th>worst drawdown</th></tr>${rows.join('')}</table></div></html>
`
}

/** The claims of the page. */
function check(curves: readonly Curve[]): void {
  const [first, , , last] = curves
  if (first === undefined || last === undefined) throw new Error('expected four desks')
  if (!curves.every(({ points }) => points.length > 450)) throw new Error('expected two decisions a week since 2022')
  if (!(first.sharpe > last.sharpe))
    throw new Error(`acting at once (${first.sharpe}) should beat acting a week later (${last.sharpe})`)
}

const out = resolve(process.argv[2] ?? '.')
const folder = process.env['PITLAKE_DATA'] ?? new URL('../data', import.meta.url).pathname
mkdirSync(out, { recursive: true })
const lake = await openLake(folder)
try {
  const prices = await pricesByInstant(lake)
  const curves: Curve[] = []
  for (const desk of desks) curves.push(await backtest(lake, desk, prices))
  const pictures = { 'equity-wealth': wealthPicture(curves), 'equity-drawdown': drawdownPicture(curves) }
  for (const [name, svg] of Object.entries(pictures)) writeFileSync(join(out, `${name}.svg`), svg)
  writeFileSync(join(out, 'equity.html'), page(curves, Object.values(pictures)))
  check(curves)
} finally {
  await lake.close()
}
