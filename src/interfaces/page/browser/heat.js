/** Vintages of a revisable series as a picture of t × the instant at which a value was told, in cells of pixels. */

import { knownAt, rows } from './ask.js'
import { figure, html, moment, quiet, section, svg } from './dom.js'
import { axes, scale } from './picture.js'
import { heatLines, heatWidth, toldSql, vintagesSql } from './questions.js'
import { state } from './state.js'

let held = null

/** What stays while the slider goes: a frame for each asset, in grey all that was told. */
export async function heat(picked, range, columns, width) {
  held = null
  if (!picked.metric.revisable || picked.component !== '') return ''
  const [told] = await rows(toldSql(picked), '')
  if (told.a0 === null) return ''
  const sql = vintagesSql(picked, range, [told.a0, told.a1], columns)
  const later = await rows(sql, '')
  const most = Math.max(...later.map(({ l }) => Math.abs(l.v - l.previous)), Number.MIN_VALUE)
  const box = { left: 62, right: width - 14, top: 12, bottom: 12 + heatLines * 8 }
  const [across, up] = [(box.right - box.left) / heatWidth(columns), [told.a0, told.a1]]
  const [x, y] = [scale(range, [box.left, box.right]), scale(up, [box.bottom, box.top])]
  held = { sql, most, box, across, later, y, frames: new Map() }
  const frames = picked.assets.map((asset) => {
    const picture = svg`<svg width=${width} height=${box.bottom + 30} aria-hidden="true">
      ${axes({ x, y, box, range, up, dated: true })}
      <g class="later">${cells(later, asset)}</g><g class="known"></g><g class="now"></g></svg>`
    const words = `vintages of ${asset}: t to the right, time of knowledge upwards; arrow keys move between cells`
    const readout = html`<p class="quiet" role="status">${asset}: no cell is looked at</p>`
    const frame = html`<div class="chart" tabindex="0" role="img" aria-label=${words}>${picture}</div>`
    held.frames.set(asset, { picture, readout })
    listen(frame, asset)
    return html`<div><div class="framed">${frame}</div>${readout}</div>`
  })
  const words = 'upwards: when each value was known. A value is the first of its t'
  return section('Vintages', quiet(html`<span>${words} <i class="key c0"></i>or higher <i class="key c1"></i>or lower
    <i class="key c2"></i>than the one before, darker for a larger difference; grey: known later.</span>`), frames)
}

/** What was told by the instant, over the grey. */
export async function heatStep() {
  const mine = held
  if (mine === null) return
  const [known, at] = [await rows(mine.sql), mine.y(knownAt())]
  const { box } = mine
  const line = svg`<line class="instant" x1=${box.left} x2=${box.right} y1=${at} y2=${at}></line>`
  mine.known = known
  for (const [asset, { picture }] of mine.frames) {
    picture.querySelector('.known').replaceChildren(...cells(known, asset, mine))
    picture.querySelector('.now').replaceChildren(...(at > box.top && at < box.bottom ? [line.cloneNode()] : []))
  }
}

/** A cell is told by the last value of it: the first of its t, or by how much it is another than the one before. */
function cells(told, asset, { box, across, most } = held) {
  return told.filter((one) => one.asset === asset).map(({ px, line, n, l }) => {
    const kind = l.previous === null || l.v === l.previous ? 'first' : l.v > l.previous ? 'up' : 'down'
    const strong = kind === 'first' ? 0.55 : 0.3 + (0.7 * Math.abs(l.v - l.previous)) / most
    return svg`<rect class="cell ${kind}" x=${(box.left + px * across).toFixed(2)} y=${box.bottom - (line + 1) * 8}
      width=${Math.max(1, across - 0.5).toFixed(2)} height="7.5" fill-opacity=${strong.toFixed(3)}
      data-px=${px} data-line=${line} data-n=${n} data-v=${l.v} data-previous=${l.previous}></rect>`
  })
}

const ways = { ArrowLeft: ['px', -1], ArrowRight: ['px', 1], ArrowUp: ['line', 1], ArrowDown: ['line', -1] }

/** Pointer and keys: the cell that is looked at is told in words. */
function listen(frame, asset) {
  let looked
  const own = () => (held.known ?? []).filter((one) => one.asset === asset)
  const look = (one) => {
    looked = one
    const { readout, picture } = held.frames.get(asset)
    picture.querySelector('.looked')?.classList.remove('looked')
    picture.querySelector(`.known [data-px="${one.px}"][data-line="${one.line}"]`)?.classList.add('looked')
    const { t, v, previous, ordinal, available_at: at, basis } = one.l
    const before = previous === null ? '' : `, ${figure(previous)} before`
    const others = one.n > 1 ? `; the last of ${one.n} in this cell` : ''
    const told = `${figure(v)} known from ${moment(at)} (vintage ${ordinal}, ${basis})`
    readout.textContent = `${asset} ${moment(t)}: ${told}${before}${others}`
  }
  frame.addEventListener('pointermove', ({ target }) => {
    const { px, line } = target.dataset
    const found = own().find((one) => String(one.px) === px && String(one.line) === line)
    if (found !== undefined) look(found)
  })
  frame.addEventListener('keydown', (event) => {
    const [name, way] = ways[event.key] ?? []
    if (name === undefined) return
    event.preventDefault()
    const other = name === 'px' ? 'line' : 'px'
    const far = (one) => Math.abs(one[name] - looked[name]) + 3 * Math.abs(one[other] - looked[other])
    const ahead = looked === undefined ? own().slice(-1) : own().filter((one) => (one[name] - looked[name]) * way > 0)
    const next = ahead.reduce((best, one) => (best === undefined || far(one) < far(best) ? one : best), undefined)
    if (next !== undefined) look(next)
  })
}
