/** How values stand on the axis upwards: as they are, by their logarithm, or with the first of each line as 100. */

import { figure, moment } from './dom.js'
import { isoOf } from './questions.js'

/** Kinds of an axis, by what the address says. */
export const measures = { '': 'linear', log: 'log', index: 'first = 100' }

/** The first value of each line, with its t: what an index begins with. */
export function basesOf(told) {
  const bases = new Map()
  for (const { asset, base } of told) if (base !== null && !bases.has(asset)) bases.set(asset, base)
  return bases
}

/**
 * The value of a line as the axis counts it; null where it has no place there. On an axis of logarithms that is a value
 * at or below zero, on one of an index each value of a line that begins with zero.
 */
export function measureOf(kind, bases) {
  if (kind === 'log') return (_, value) => (value > 0 ? value : null)
  if (kind !== 'index') return (_, value) => value
  return (asset, value) => {
    const base = bases.get(asset)
    return value === null || base === undefined || base.v === 0 ? null : (value / base.v) * 100
  }
}

/** The least and the greatest that is to be drawn of columns, as the axis counts it. */
export function extentOf(kind, layers) {
  let low = Infinity
  let high = -Infinity
  for (const { told, measure } of layers)
    for (const { asset, lo, hi, least } of told)
      for (const value of [measure(asset, kind === 'log' ? least : lo), measure(asset, hi)])
        if (value !== null) {
          low = Math.min(low, value)
          high = Math.max(high, value)
        }
  if (low > high) return kind === 'log' ? [1, 10] : [0, 1]
  if (kind === 'log') {
    const room = (high / low) ** 0.04
    return low === high ? [low / 2, high * 2] : [low / room, high * room]
  }
  const room = (high - low || Math.abs(high) || 1) * 0.04
  return [low - room, high + room]
}

const sum = (told, asset, name) => told.reduce((all, row) => all + (row.asset === asset ? row[name] : 0), 0)

/** What the axis does not show, or changes, in sentences. */
export function sayings(kind, assets, { told, later }) {
  if (kind === 'log') {
    const counted = (asset) => [sum(told, asset, 'beneath'), sum(later, asset, 'beneath')]
    const own = assets.map((asset) => [asset, ...counted(asset)]).filter(([, , all]) => all > 0)
    if (own.length === 0) return []
    const counts = own.map(([asset, known, all]) => `${asset} ${figure(known)} of the known, ${figure(all)} of all`)
    return [`A log axis has no place for values at or below zero. Not drawn: ${counts.join('; ')}.`]
  }
  if (kind !== 'index') return []
  const knownBases = basesOf(told)
  const allBases = basesOf(later)
  const named = ({ v, t }) => `${figure(v)} on ${moment(isoOf(t))}`
  const begun = assets.filter((asset) => knownBases.has(asset) && knownBases.get(asset).v !== 0)
  const said = begun.length === 0 ? [] : [`100 is ${begun.map((one) => `${one} ${named(knownBases.get(one))}`).join('; ')}.`]
  for (const asset of assets) {
    const base = knownBases.get(asset)
    const baseOfAll = allBases.get(asset)
    const zero = () => `${asset} begins with 0 on ${moment(isoOf(base.t))}: it has no index and is not drawn.`
    if (base === undefined) said.push(`${asset} has no known value in this range, so it has no base.`)
    else if (base.v === 0) said.push(zero())
    else if (base.v < 0) said.push(`${asset} begins below zero: its index falls where its value rises.`)
    if (base && baseOfAll && (base.t !== baseOfAll.t || base.v !== baseOfAll.v))
      said.push(`In grey, ${asset} begins with ${named(baseOfAll)}${baseOfAll.v === 0 ? ' and is not drawn' : ''}.`)
  }
  return said
}
