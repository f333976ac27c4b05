/** Parts of a chart: axes, lines through columns of pixels, and the search for the nearest point. */

import { svg } from './dom.js'

/** Sets attributes of an element. */
export function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
}

/**
 * Both axes with their labels, and a grid behind. `counted` means numbers instead of times to the right; `dated` times
 * and `logged` logarithms upwards.
 */
export function axes({ x, y, box, range, up, counted = false, dated = false, logged = false }) {
  const acrossTicks = (counted ? ticks : timeTicks)(range[0], range[1], Math.max(2, (box.right - box.left) / 95))
  const acrossStep = (acrossTicks[1] ?? range[1]) - acrossTicks[0]
  const upCount = Math.max(2, (box.bottom - box.top) / 60)
  const upTicks = (dated ? timeTicks : logged ? logTicks : ticks)(up[0], up[1], upCount)
  const upStep = (upTicks[1] ?? up[1]) - upTicks[0]
  return svg`<g class="axes">
    ${upTicks.map((value) => svg`<g><line x1=${box.left} x2=${box.right} y1=${y(value)} y2=${y(value)}></line>
      <text x=${box.left - 8} y=${y(value) + 4} text-anchor="end">
      ${dated ? timeText(value, upStep) : tickText(value)}</text></g>`)}
    ${acrossTicks.map((at) => svg`<g><line x1=${x(at)} x2=${x(at)} y1=${box.top} y2=${box.bottom}></line>
      <text x=${x(at)} y=${box.bottom + 18} text-anchor=${x(at) > box.right - 12 ? 'end' : 'middle'}>
      ${counted ? tickText(at) : timeText(at, acrossStep)}</text></g>`)}</g>`
}

/** Maximum number of columns of a line whose single points are marked. */
const mostMarked = 260

/**
 * The line of each asset through its columns, and marks of single points. `y` gives the place of a value of an asset,
 * or null.
 */
export function lines(columns, { picked, x, gap, kind }, y) {
  return picked.assets.map((asset, n) => {
    const assetColumns = columns.filter((column) => column.asset === asset)
    const placeOf = (value) => y(asset, value)
    const singlePoints = assetColumns.length > mostMarked ? []
      : assetColumns.filter((column) => column.n === 1 && placeOf(column.first) !== null)
    const radius = assetColumns.length > mostMarked / 2 ? 1.6 : 2.6
    const marks = singlePoints.map(({ t1, first }) => svg`<circle cx=${x(t1).toFixed(2)} cy=${placeOf(first).toFixed(2)}
      r=${radius} data-t=${t1} data-v=${first}></circle>`)
    const path = pathOf(assetColumns, { x, y: placeOf, gap, kind })
    return svg`<g class="line c${n % 8}" data-asset=${asset}><path d=${path}></path>${marks}</g>`
  })
}

/**
 * The path of a line through columns. It enters each at its first point and leaves at its last; in between it spans the
 * values from the least to the greatest that the axis has a place for. It ends before a value without a place.
 */
function pathOf(columns, { x, y, gap, kind }) {
  let path = ''
  /** The point before; null if the line does not go on from it. */
  let before = null
  for (const { px, n, lo, least, hi, first, t0, t1, l } of columns) {
    const ends = [[t0, first], [t1, l.v]]
    const low = kind === 'log' ? least : lo
    const points = n === 1 ? [ends[1]] : n === 2 ? ends : [ends[0], [t0, low], [t1, hi], ends[1]]
    for (const [t, v] of points) {
      const up = y(v)
      if (up === null) {
        before = null
        continue
      }
      const across = x(t)
      const isNewLine = before === null || (before.px !== px && across - before.across > gap)
      path += `${isNewLine ? 'M' : 'L'}${across.toFixed(2)},${up.toFixed(2)}`
      before = { across, px }
    }
  }
  return path
}

/** The column whose last point lies nearest to a place; undefined if none is near. */
export function nearest(columns, px, py, x, y) {
  let best
  let leastDistance = 40
  for (const column of columns) {
    const across = Math.abs(x(column.t1) - px)
    if (across > 40) continue
    const distance = across * 3 + Math.min(1, Math.abs((y(column.asset, column.l.v) ?? py) - py) / 500)
    if (distance >= leastDistance) continue
    best = column
    leastDistance = distance
  }
  return best
}

/** Round numbers from `low` to `high`, about `count` of them. */
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count)
  if (!(raw > 0) || !Number.isFinite(raw)) return [low]
  const size = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 5, 10].map((n) => n * size).find((candidate) => candidate >= raw) ?? 10 * size
  const first = Math.ceil(low / step)
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, n) => Number(((first + n) * step).toPrecision(12)))
}

/** Round numbers of a logarithmic axis, about `count` of them: decades, and parts of decades if there are few. */
function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low))
  const last = Math.ceil(Math.log10(high))
  const every = Math.max(1, Math.ceil((last - first) / count))
  const decades = Array.from({ length: Math.ceil((last - first + 1) / every) }, (_, n) => first + n * every)
  // From the finest division of a decade to none.
  const divisions = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].map((parts) =>
    decades.flatMap((power) => parts.map((n) => Number(`${n}e${power}`))).filter((tick) => tick >= low && tick <= high))
  const found = divisions.find(({ length }) => length <= count * 1.6) ?? divisions.at(-1)
  return found.length > 2 ? found : ticks(low, high, count)
}

/** A short label of a number on an axis. */
function tickText(value) {
  const isLarge = Math.abs(value) >= 10_000
  const isSmall = value !== 0 && Math.abs(value) < 0.001
  const notation = isSmall ? 'scientific' : 'compact'
  return isLarge || isSmall ? value.toLocaleString('en', { notation, maximumSignificantDigits: 4 }) : String(value)
}

const minute = 60_000
/** Steps of a time axis: up to a week in milliseconds, longer ones in months. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map((n) => n * minute)
const months = [1, 2, 3, 6, 12, 24, 60, 120]

/** Round instants of the UTC calendar from `low` to `high`, about `count` of them, in milliseconds. */
function timeTicks(low, high, count) {
  const raw = (high - low) / Math.max(1, count)
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

/** A label of an instant on an axis: the part that differs from its neighbours, which are `step` away. */
function timeText(ms, step) {
  const text = new Date(ms).toISOString()
  if (step < 1440 * minute && !text.endsWith('T00:00:00.000Z')) return text.slice(11, 16)
  if (step < 28 * 1440 * minute) return text.slice(5, 10)
  return text.slice(0, step < 360 * 1440 * minute ? 7 : 4)
}

/** Function from positive values to places, by their logarithms. */
export function logScale([low, high], places) {
  const even = scale([Math.log10(low), Math.log10(high)], places)
  return (value) => even(Math.log10(value))
}

/** Function from values to places; `invert` goes the other way. */
export function scale([low, high], [from, to]) {
  const rise = high === low ? 0 : (to - from) / (high - low)
  const place = (value) => (rise === 0 ? (from + to) / 2 : from + (value - low) * rise)
  return Object.assign(place, { invert: (at) => (rise === 0 ? low : low + (at - from) / rise) })
}
