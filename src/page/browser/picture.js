/** What a chart is made of: axes, lines through columns of pixels, and which point lies nearest. */

import { ticks, tickText, timeText, timeTicks } from './axes.js'
import { svg } from './dom.js'

/** Sets where something stands. */
export function place(element, given) {
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value)
}

/** Both axes with their figures, and a grid behind. */
export function axes({ x, y, box, range, up, counted = false, dated = false }) {
  const along = (counted ? ticks : timeTicks)(range[0], range[1], Math.max(2, (box.right - box.left) / 95))
  const apart = (along[1] ?? range[1]) - along[0]
  const down = (dated ? timeTicks : ticks)(up[0], up[1], Math.max(2, (box.bottom - box.top) / 60))
  const between = (down[1] ?? up[1]) - down[0]
  return svg`<g class="axes">
    ${down.map((value) => svg`<g><line x1=${box.left} x2=${box.right} y1=${y(value)} y2=${y(value)}></line>
      <text x=${box.left - 8} y=${y(value) + 4} text-anchor="end">
      ${dated ? timeText(value, between) : tickText(value)}</text></g>`)}
    ${along.map((at) => svg`<g><line x1=${x(at)} x2=${x(at)} y1=${box.top} y2=${box.bottom}></line>
      <text x=${x(at)} y=${box.bottom + 18} text-anchor="middle">
      ${counted ? tickText(at) : timeText(at, apart)}</text></g>`)}</g>`
}

/** The lines and marks of rows, each asset in its own colour. */
export function lines(told, { picked, x, y, gap }) {
  return picked.assets.map((asset, n) => {
    const own = told.filter((row) => row.asset === asset)
    const single = own.length > 260 ? [] : own.filter((row) => row.n === 1 && row.first !== null)
    const marks = single.map(({ t1, first }) => svg`<circle cx=${x(t1).toFixed(2)} cy=${y(first).toFixed(2)}
      r=${own.length > 130 ? 1.6 : 2.6} data-t=${t1} data-v=${first}></circle>`)
    return svg`<g class="line c${n % 8}" data-asset=${asset}><path d=${pathOf(own, x, y, gap)}></path>${marks}</g>`
  })
}

/** A line through columns: into each by its first point, out by its last, between them from the least to the most. */
function pathOf(columns, x, y, gap) {
  let [path, before] = ['', null]
  for (const { px, n, lo, hi, first, t0, t1, l } of columns) {
    const ends = [[t0, first], [t1, l.v]]
    for (const [t, v] of n === 1 ? [ends[1]] : n === 2 ? ends : [ends[0], [t0, lo], [t1, hi], ends[1]]) {
      if (v === null) before = null
      else {
        const at = x(t)
        const apart = before === null || (before.px !== px && at - before.at > gap)
        path += `${apart ? 'M' : 'L'}${at.toFixed(2)},${y(v).toFixed(2)}`
        before = { at, px }
      }
    }
  }
  return path
}

/** Of the columns near a place the one whose last point lies nearest; undefined where none is near. */
export function nearest(columns, px, py, { x, y }) {
  let [best, least] = [undefined, 40]
  for (const column of columns) {
    const across = Math.abs(x(column.t1) - px)
    if (across > 40) continue
    const away = across * 3 + (column.l.v === null ? 0 : Math.min(1, Math.abs(y(column.l.v) - py) / 500))
    if (away < least) [best, least] = [column, away]
  }
  return best
}
