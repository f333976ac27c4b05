/** Vintages of a revisable series as a picture: t to the right, the time at which a value was known upwards. */

import { knownAt, rows } from './requests.js'
import { figure, html, moment, quiet, section, svg } from './dom.js'
import { axes, scale } from './picture.js'
import { heatLines, heatWidth, vintageRangeSql, vintagesSql } from './questions.js'
import { state } from './state.js'
import { changeOf, largestChangeOf } from './vintage-changes.js'

/** The picture that is shown; null if there is none. */
let shownHeat = null
/** Pixels from one line of cells to the next. */
const lineHeight = 8

/** Draws what does not depend on the instant: a frame for each asset, with all cells in grey. */
export async function heat(picked, range, columns, width) {
  shownHeat = null
  if (!picked.metric.revisable || picked.component !== '') return ''
  const [{ a0, a1 }] = await rows(vintageRangeSql(picked), '')
  if (a0 === null) return ''
  const up = [a0, a1]
  const sql = vintagesSql(picked, range, up, columns)
  const allCells = await rows(sql, '')
  const largestChange = largestChangeOf(allCells.map(({ l }) => l))
  const box = { left: 62, right: width - 14, top: 12, bottom: 12 + heatLines * lineHeight }
  const cellWidth = (box.right - box.left) / heatWidth(columns)
  const x = scale(range, [box.left, box.right])
  const y = scale(up, [box.bottom, box.top])
  shownHeat = { sql, largestChange, box, cellWidth, y, knownCells: [], frames: new Map() }
  const frames = picked.assets.map((asset) => {
    const picture = svg`<svg width=${width} height=${box.bottom + 30} aria-hidden="true">
      ${axes({ x, y, box, range, up, dated: true })}
      <g class="later">${cellMarks(allCells, asset, shownHeat)}</g><g class="known"></g><g class="now"></g></svg>`
    const label = `vintages of ${asset}: t to the right, time of knowledge upwards; arrow keys move between cells`
    const readout = html`<p class="quiet" role="status">${asset}: no cell is looked at</p>`
    const frame = html`<div class="chart" tabindex="0" role="img" aria-label=${label}>${picture}</div>`
    shownHeat.frames.set(asset, { picture, readout })
    listen(frame, asset)
    return html`<div><div class="framed">${frame}</div>${readout}</div>`
  })
  const words = 'upwards: when each value was known. A value is the first of its t'
  return section('Vintages', quiet(html`<span>${words} <i class="key c0"></i>or higher <i class="key c1"></i>or lower
    <i class="key c2"></i>than the one before, darker for a larger difference; grey: known later.</span>`), frames)
}

/** Draws the cells that are known at the instant over the grey ones. */
export async function heatStep() {
  const drawnHeat = shownHeat
  if (drawnHeat === null) return
  const { sql, box, y, frames } = drawnHeat
  const knownCells = await rows(sql)
  const at = y(knownAt())
  const line = svg`<line class="instant" x1=${box.left} x2=${box.right} y1=${at} y2=${at}></line>`
  drawnHeat.knownCells = knownCells
  for (const [asset, { picture }] of frames) {
    picture.querySelector('.known').replaceChildren(...cellMarks(knownCells, asset, drawnHeat))
    picture.querySelector('.now').replaceChildren(...(at > box.top && at < box.bottom ? [line.cloneNode()] : []))
  }
}

/** Marks of cells. The last value of a cell decides its colour: first of its t, higher or lower than the one before. */
function cellMarks(cells, asset, { box, cellWidth, largestChange }) {
  return cells.filter((cell) => cell.asset === asset).map(({ px, line, n, l }) => {
    const kind = l.previous === null || l.v === l.previous ? 'first' : l.v > l.previous ? 'up' : 'down'
    const opacity = kind === 'first' ? 0.55 : 0.3 + (0.7 * changeOf(l)) / largestChange
    return svg`<rect class="cell ${kind}" x=${(box.left + px * cellWidth).toFixed(2)}
      y=${box.bottom - (line + 1) * lineHeight} width=${Math.max(1, cellWidth - 0.5).toFixed(2)} height="7.5"
      fill-opacity=${opacity.toFixed(3)}
      data-px=${px} data-line=${line} data-n=${n} data-v=${l.v} data-previous=${l.previous}></rect>`
  })
}

/** Axis and direction of each arrow key. */
const directions = { ArrowLeft: ['px', -1], ArrowRight: ['px', 1], ArrowUp: ['line', 1], ArrowDown: ['line', -1] }

/** Shows the cell under the pointer, or the one that arrow keys reach, in words. */
function listen(frame, asset) {
  let looked
  const ownCells = () => shownHeat.knownCells.filter((cell) => cell.asset === asset)
  const look = (cell) => {
    looked = cell
    const { readout, picture } = shownHeat.frames.get(asset)
    picture.querySelector('.looked')?.classList.remove('looked')
    picture.querySelector(`.known [data-px="${cell.px}"][data-line="${cell.line}"]`)?.classList.add('looked')
    readout.textContent = `${asset} ${cellText(cell)}`
  }
  frame.addEventListener('pointermove', ({ target }) => {
    const { px, line } = target.dataset
    const found = ownCells().find((cell) => String(cell.px) === px && String(cell.line) === line)
    if (found !== undefined) look(found)
  })
  frame.addEventListener('keydown', (event) => {
    const [axis, direction] = directions[event.key] ?? []
    if (axis === undefined) return
    event.preventDefault()
    const next = looked === undefined ? ownCells().at(-1) : nextCell(ownCells(), looked, axis, direction)
    if (next !== undefined) look(next)
  })
}

/** The nearest cell in a direction; a cell off the line counts as three times as far. */
function nextCell(cells, from, axis, direction) {
  const otherAxis = axis === 'px' ? 'line' : 'px'
  const distance = (cell) => Math.abs(cell[axis] - from[axis]) + 3 * Math.abs(cell[otherAxis] - from[otherAxis])
  const ahead = cells.filter((cell) => (cell[axis] - from[axis]) * direction > 0)
  return ahead.reduce((best, cell) => (best === undefined || distance(cell) < distance(best) ? cell : best), undefined)
}

function cellText({ n, l: { t, v, previous, ordinal, available_at: at, basis } }) {
  const before = previous === null ? '' : `, ${figure(previous)} before`
  const others = n > 1 ? `; the last of ${n} in this cell` : ''
  return `${moment(t)}: ${figure(v)} known from ${moment(at)} (vintage ${ordinal}, ${basis})${before}${others}`
}
