/** What the axis upwards counts: values, their logarithms, or an index whose first value is 100. */

import { figure, moment } from './dom.js'
import { isoOf } from './questions.js'

/** Labels of the kinds of axis, by their names in the address. */
export const axisLabels = { '': 'linear', log: 'log', index: 'first = 100' }

/** The first value of each asset, with its t: the base of an index. */
export function basesOf(columns) {
  const bases = new Map()
  for (const { asset, base } of columns) if (base !== null && !bases.has(asset)) bases.set(asset, base)
  return bases
}

/**
 * Returns the function that measures a value of an asset on an axis of a kind. It returns null if the axis has no place
 * for the value: a logarithmic axis for values at or below zero, an index if the base is zero.
 */
export function measureOf(kind, bases) {
  if (kind === 'log') return (_, value) => (value > 0 ? value : null)
  if (kind !== 'index') return (_, value) => value
  return (asset, value) => {
    const base = bases.get(asset)
    return value === null || base === undefined || base.v === 0 ? null : (value / base.v) * 100
  }
}

/** The range of an axis that has room for layers, each with columns and their measure. */
export function extentOf(kind, layers) {
  let low = Infinity
  let high = -Infinity
  for (const { columns, measure } of layers)
    for (const { asset, lo, hi, least } of columns)
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

/** Sentences about what the axis does not show, or how it changes values. */
export function axisNotes(kind, assets, { known, all }) {
  if (kind === 'log') return logNotes(assets, known, all)
  return kind === 'index' ? indexNotes(assets, basesOf(known), basesOf(all)) : []
}

function logNotes(assets, known, all) {
  const undrawn = (columns, asset) =>
    columns.reduce((sum, column) => sum + (column.asset === asset ? column.beneath : 0), 0)
  const counts = assets.filter((asset) => undrawn(all, asset) > 0).map((asset) =>
    `${asset} ${figure(undrawn(known, asset))} of the known, ${figure(undrawn(all, asset))} of all`)
  if (counts.length === 0) return []
  return [`A log axis has no place for values at or below zero. Not drawn: ${counts.join('; ')}.`]
}

function indexNotes(assets, knownBases, allBases) {
  const baseText = ({ v, t }) => `${figure(v)} on ${moment(isoOf(t))}`
  const indexed = assets.filter((asset) => knownBases.has(asset) && knownBases.get(asset).v !== 0)
  const bases = indexed.map((asset) => `${asset} ${baseText(knownBases.get(asset))}`)
  const notes = bases.length === 0 ? [] : [`100 is ${bases.join('; ')}.`]
  for (const asset of assets) {
    const base = knownBases.get(asset)
    const baseOfAll = allBases.get(asset)
    if (base === undefined) notes.push(`${asset} has no known value in this range, so it has no base.`)
    else if (base.v === 0)
      notes.push(`${asset} begins with 0 on ${moment(isoOf(base.t))}: it has no index and is not drawn.`)
    else if (base.v < 0) notes.push(`${asset} begins below zero: its index falls where its value rises.`)
    if (base && baseOfAll && (base.t !== baseOfAll.t || base.v !== baseOfAll.v))
      notes.push(`In grey, ${asset} begins with ${baseText(baseOfAll)}${baseOfAll.v === 0 ? ' and is not drawn' : ''}.`)
  }
  return notes
}
