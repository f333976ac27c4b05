import type { FutureKind, LookaheadDifference } from './runs.ts'
import { number } from '../../base/figures.ts'

/**
 * Describes a differing row in a sentence: when, about what, the value that the query returns, and the one that it
 * would have returned.
 */
export function leakSentence({ as_of, row, column, full, truncated, future }: LookaheadDifference): string {
  const [[, ts] = [], ...others] = Object.entries(row)
  const about = others.map(([name, value]) => `${name} ${quoteValue(value)}`).join(', ')
  const at = `on ${quoteValue(ts)}${about === '' ? '' : ` (${about})`}`
  const otherwise = otherwises[future](quoteValue(as_of))
  if (column !== null)
    return `${at} the query gives ${column} ${quoteValue(full)}; ${otherwise} it gives ${quoteValue(truncated)}`
  return full === null
    ? `${at} there is no row; ${otherwise} there is one`
    : `${at} there is a row; ${otherwise} there is none`
}

const otherwises: Readonly<Record<FutureKind, (at: string) => string>> = {
  cut: (at) => `with only the data known at ${at}`,
  'other values': () => 'with different later data',
  'other points': () => 'with different later data',
  calendar: (at) => `with no decisions after ${at}`,
}

/** Formats a value as it is read: a midnight is its day. */
function quoteValue(value: unknown): string {
  // Three decimals tell small numbers from each other as little as they tell them.
  if (typeof value === 'number') return Math.abs(value) < 1000 ? String(Number(value.toPrecision(8))) : number(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null'
  return value.replace(/T00:00:00(?:\.0+)?Z$/, '').replace(/\.0+Z$/, 'Z')
}
