/** What a chart is made of: axes, lines through columns of pixels, and which point lies nearest. */

import { svg } from './dom.js'

/** Sets where something stands. */
export function place(element, given) {
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value)
}

/** Both axes with their figures, and a grid behind. */
export function axes({ x, y, box, range, up, counted = false, dated = false, logged = false }) {
  const along = (counted ? ticks : timeTicks)(range[0], range[1], Math.max(2, (box.right - box.left) / 95))
  const apart = (along[1] ?? range[1]) - along[0]
  const down = (dated ? timeTicks : logged ? logTicks : ticks)(up[0], up[1], Math.max(2, (box.bottom - box.top) / 60))
  const between = (down[1] ?? up[1]) - down[0]
  return svg`<g class="axes">
    ${down.map((value) => svg`<g><line x1=${box.left} x2=${box.right} y1=${y(value)} y2=${y(value)}></line>
      <text x=${box.left - 8} y=${y(value) + 4} text-anchor="end">
      ${dated ? timeText(value, between) : tickText(value)}</text></g>`)}
    ${along.map((at) => svg`<g><line x1=${x(at)} x2=${x(at)} y1=${box.top} y2=${box.bottom}></line>
      <text x=${x(at)} y=${box.bottom + 18} text-anchor=${x(at) > box.right - 12 ? 'end' : 'middle'}>
      ${counted ? tickText(at) : timeText(at, apart)}</text></g>`)}</g>`
}

/** The lines and marks of rows, each asset in its own colour; `y` gives the place of a value of an asset, or null. */
export function lines(told, { picked, x, gap, kind }, y) {
  return picked.assets.map((asset, n) => {
    const own = told.filter((row) => row.asset === asset)
    const up = (value) => y(asset, value)
    const single = own.length > 260 ? [] : own.filter((row) => row.n === 1 && up(row.first) !== null)
    const marks = single.map(({ t1, first }) => svg`<circle cx=${x(t1).toFixed(2)} cy=${up(first).toFixed(2)}
      r=${own.length > 130 ? 1.6 : 2.6} data-t=${t1} data-v=${first}></circle>`)
    const path = pathOf(own, { x, y: up, gap, kind })
    return svg`<g class="line c${n % 8}" data-asset=${asset}><path d=${path}></path>${marks}</g>`
  })
}

/**
 * A line through columns: into each by its first point, out by its last, between them from the least to the most that
 * the axis has a place for. It ends before a value without a place.
 */
function pathOf(columns, { x, y, gap, kind }) {
  let [path, before] = ['', null]
  for (const { px, n, lo, least, hi, first, t0, t1, l } of columns) {
    const ends = [[t0, first], [t1, l.v]]
    const low = kind === 'log' ? least : lo
    for (const [t, v] of n === 1 ? [ends[1]] : n === 2 ? ends : [ends[0], [t0, low], [t1, hi], ends[1]]) {
      const up = y(v)
      if (up === null) before = null
      else {
        const at = x(t)
        const apart = before === null || (before.px !== px && at - before.at > gap)
        path += `${apart ? 'M' : 'L'}${at.toFixed(2)},${up.toFixed(2)}`
        before = { at, px }
      }
    }
  }
  return path
}

/** Of the columns near a place the one whose last point lies nearest; undefined where none is near. */
export function nearest(columns, px, py, x, y) {
  let [best, least] = [undefined, 40]
  for (const column of columns) {
    const across = Math.abs(x(column.t1) - px)
    if (across > 40) continue
    const away = across * 3 + Math.min(1, Math.abs((y(column.asset, column.l.v) ?? py) - py) / 500)
    if (away < least) [best, least] = [column, away]
  }
  return best
}

/** Round figures from `low` to `high`, about so many. */
function ticks(low, high, about) {
  const raw = (high - low) / Math.max(1, about)
  if (!(raw > 0) || !Number.isFinite(raw)) return [low]
  const size = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 5, 10].map((n) => n * size).find((one) => one >= raw) ?? 10 * size
  const first = Math.ceil(low / step)
  const count = Math.floor(high / step) - first + 1
  return Array.from({ length: count }, (_, n) => Number(((first + n) * step).toPrecision(12)))
}

/** Round figures of an axis of logarithms: decades, within a few of them also parts of them. */
function logTicks(low, high, about) {
  const first = Math.floor(Math.log10(low))
  const last = Math.ceil(Math.log10(high))
  const every = Math.max(1, Math.ceil((last - first) / about))
  const parts = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].map((own) => {
    const decades = Array.from({ length: Math.ceil((last - first + 1) / every) }, (_, n) => first + n * every)
    const all = decades.flatMap((power) => own.map((n) => Number(`${n}e${power}`)))
    return all.filter((one) => one >= low && one <= high)
  })
  const found = parts.find((own) => own.length <= about * 1.6) ?? parts.at(-1)
  return found.length > 2 ? found : ticks(low, high, about)
}

/** A figure of an axis, short. */
function tickText(value) {
  const [large, small] = [Math.abs(value) >= 10_000, value !== 0 && Math.abs(value) < 0.001]
  const notation = small ? 'scientific' : 'compact'
  return large || small ? value.toLocaleString('en', { notation, maximumSignificantDigits: 4 }) : String(value)
}

const minute = 60_000
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map((n) => n * minute)
const months = [1, 2, 3, 6, 12, 24, 60, 120]

/** Instants of the UTC calendar between two, about so many, in milliseconds. */
function timeTicks(low, high, about) {
  const raw = (high - low) / Math.max(1, about)
  const even = steps.find((step) => step >= raw)
  if (even !== undefined) {
    const first = Math.ceil(low / even) * even
    return Array.from({ length: Math.max(0, Math.floor((high - first) / even) + 1) }, (_, n) => first + n * even)
  }
  const step = months.find((n) => n * 30.4 * 1440 * minute >= raw) ?? 240
  const from = new Date(low)
  const found = []
  const first = Math.floor((from.getUTCFullYear() * 12 + from.getUTCMonth()) / step) * step
  for (let month = first; found.length < 100; month += step) {
    const at = Date.UTC(Math.floor(month / 12), month % 12)
    if (at > high) return found
    if (at >= low) found.push(at)
  }
  return found
}

/** An instant of an axis: what differs from its neighbours. */
function timeText(ms, apart) {
  const text = new Date(ms).toISOString()
  if (apart < 1440 * minute && !text.endsWith('T00:00:00.000Z')) return text.slice(11, 16)
  if (apart < 28 * 1440 * minute) return text.slice(5, 10)
  return text.slice(0, apart < 360 * 1440 * minute ? 7 : 4)
}

/** From positive values to places, by their logarithms. */
export function logScale([low, high], places) {
  const even = scale([Math.log10(low), Math.log10(high)], places)
  return (value) => even(Math.log10(value))
}

/** From values to places; both ends of it stand in `domain`. */
export function scale([low, high], [from, to]) {
  const rise = high === low ? 0 : (to - from) / (high - low)
  const place = (value) => (rise === 0 ? (from + to) / 2 : from + (value - low) * rise)
  return Object.assign(place, { invert: (at) => (rise === 0 ? low : low + (at - from) / rise) })
}
