import * as Plot from '@observablehq/plot'
import { JSDOM } from 'jsdom'

/** Lines on logarithms, each with its name at its end. */
interface Chart {
  readonly x: string
  readonly y: string
  readonly lines: readonly { readonly name: string; readonly x: number; readonly y: number }[]
}

const common = { width: 860, style: { fontFamily: 'sans-serif', background: '#fff', color: '#222' } } as const

/** A picture that stands alone. */
function standing(drawn: Element): string {
  drawn.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  return `${drawn.outerHTML.replaceAll(/<style>.*?<\/style>/gs, '')}\n`
}

/** Draws how each line grows. */
export function chart({ x, y, lines }: Chart): string {
  const { document } = new JSDOM('').window
  return standing(
    Plot.plot({
      ...common,
      document,
      height: 520,
      marginRight: 200,
      x: { type: 'log', label: x, grid: true },
      y: { type: 'log', label: y, grid: true },
      color: { type: 'categorical', scheme: 'Tableau10' },
      marks: [
        Plot.line(lines, { x: 'x', y: 'y', z: 'name', stroke: 'name', strokeWidth: 1.5 }),
        Plot.dot(lines, { x: 'x', y: 'y', fill: 'name', r: 2.5 }),
        Plot.text(endsOf(lines), {
          x: 'x',
          y: 'y',
          text: 'name',
          fill: 'name',
          dx: 8,
          textAnchor: 'start',
          fontSize: 10,
        }),
      ],
    }),
  )
}

/** Where the names of lines stand: at their ends, none upon another. */
function endsOf(lines: Chart['lines']): Chart['lines'] {
  const last = [...Map.groupBy(lines, ({ name }) => name).values()].flatMap((own) => own.at(-1) ?? [])
  const all = lines.map(({ y }) => y)
  const apart = (Math.max(...all) / Math.min(...all)) ** (1 / 42)
  const x = Math.max(...lines.map((line) => line.x))
  let least = 0
  return last
    .toSorted((a, b) => a.y - b.y)
    .map(({ name, y }) => {
      least = Math.max(y, least * apart)
      return { name, x, y: least }
    })
}

/** Draws how many times as long peers take as ours, a row a question. */
export function ratios(bars: readonly { readonly name: string; readonly peer: string; readonly ratio: number }[]) {
  const { document } = new JSDOM('').window
  const rows = new Set(bars.map(({ name }) => name)).size
  const peers = [...new Set(bars.map(({ peer }) => peer))]
  const legend = { frameAnchor: 'top-right', textAnchor: 'start', dx: 14 } as const
  return standing(
    Plot.plot({
      ...common,
      document,
      height: 60 + Math.max(24 * rows, 14 * peers.length),
      marginLeft: 330,
      marginRight: 210,
      x: { type: 'log', label: 'seconds of the peer over ours', grid: true },
      y: { label: null },
      color: { type: 'categorical', domain: peers },
      marks: [
        Plot.ruleX([1]),
        Plot.dot(bars, { x: 'ratio', y: 'name', fill: 'peer', r: 4 }),
        ...peers.map((peer, n) =>
          Plot.text([peer], { ...legend, dy: 14 * n, text: (name) => `● ${name}`, fill: () => peer }),
        ),
      ],
    }),
  )
}
