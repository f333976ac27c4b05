import { LakeError, usage } from '../../base/errors.ts'
import type { Table } from 'apache-arrow'
import { quoteName } from '../../lake/store/engine.ts'
import { literal } from '../../query/lake.ts'
import { rows } from '../../query/rows.ts'
import type { Preregistration } from '../heads/preregister.ts'

/*
 * A sweep: one query for each combination of parameters, each recorded before any result is seen. The Python package
 * computes the same in `sweep.py`; both are tested against `test/golden/sweep.json`.
 */

/** Value of a parameter of a sweep. */
export type SweepValue = string | number | boolean

/** Values of each parameter of a sweep. */
export type SweepGrid = Readonly<Record<string, readonly SweepValue[]>>

/** One combination of the values of a grid. */
export type SweepParameters = Readonly<Record<string, SweepValue>>

/** Columns that a sweep adds to the parameters. */
const addedColumns = ['observations', 'sharpe', 'deflated_sharpe', 'tries', 'query_sha256'] as const

/** Moments of the returns of one combination. */
export interface ReturnStatistics {
  /** Number of returns. */
  readonly observations: number
  /** Sharpe ratio of one period, without a riskless rate; null with fewer than three returns, or if they do not vary. */
  readonly sharpe: number | null
  readonly skewness: number
  /** 3 for normal returns. */
  readonly kurtosis: number
}

/** Measured combination: its parameters, the text of its query and its returns. */
export interface SweepTry {
  readonly parameters: SweepParameters
  readonly text: string
  readonly returns: readonly number[]
}

/** Row of a sweep. */
export type SweepRow = Readonly<Record<string, SweepValue | null>>

/** Lists each combination of the values of a grid; the last parameter varies fastest. */
export function combinationsOf(grid: SweepGrid): readonly SweepParameters[] {
  const entries = Object.entries(grid)
  if (entries.length === 0)
    throw usage('sweep: grid', { expected: 'parameters with their values, such as { days: [30, 90] }', got: 'none' })
  for (const [name, values] of entries) {
    if (!/^[a-z_][a-z0-9_]*$/.test(name) || addedColumns.some((column) => column === name))
      throw usage('sweep: grid', {
        expected: `names of parameters in small letters, other than ${addedColumns.join(', ')}`,
        got: JSON.stringify(name),
        next: 'rename it',
      })
    if (!Array.isArray(values) || values.length === 0)
      throw usage(`sweep: ${name}`, { expected: 'a list of values, at least one', got: JSON.stringify(values) })
    const given: readonly unknown[] = values
    const strange = given.findIndex((value) => !isSweepValue(value))
    if (strange >= 0)
      throw usage(`sweep: ${name}`, { expected: 'texts, finite numbers, true or false', got: String(given[strange]) })
  }
  return entries.reduce<readonly SweepParameters[]>(
    (tries, [name, values]) => tries.flatMap((parameters) => values.map((value) => ({ ...parameters, [name]: value }))),
    [{}],
  )
}

function isSweepValue(value: unknown): boolean {
  return (
    typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
  )
}

/** Computes the moments of returns. */
export function statisticsOf(returns: readonly number[]): ReturnStatistics {
  const observations = returns.length
  const flat = { observations, sharpe: null, skewness: 0, kurtosis: 3 }
  if (observations < 3) return flat
  const mean = sum(returns) / observations
  const moment = (power: number): number => sum(returns.map((value) => (value - mean) ** power)) / observations
  const second = moment(2)
  const deviation = Math.sqrt((second * observations) / (observations - 1))
  const largest = returns.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  if (deviation <= 1e-12 * largest) return flat
  return {
    observations,
    sharpe: mean / deviation,
    skewness: moment(3) / second ** 1.5,
    kurtosis: moment(4) / second ** 2,
  }
}

/** Computes the one-period Sharpe ratio of the best of so many tries by chance, if ratios vary as these do. */
export function expectedBest(sharpes: readonly number[], tries: number): number {
  if (tries < 2 || sharpes.length < 2) return 0
  const mean = sum(sharpes) / sharpes.length
  const spread = Math.sqrt(sum(sharpes.map((value) => (value - mean) ** 2)) / (sharpes.length - 1))
  const euler = 0.5772156649015329
  return spread * ((1 - euler) * normalQuantile(1 - 1 / tries) + euler * normalQuantile(1 - 1 / (tries * Math.E)))
}

/** Computes the probability that the true Sharpe ratio exceeds that of chance (Bailey and López de Prado, 2014). */
export function deflatedSharpe(own: ReturnStatistics, chance: number): number | null {
  const { observations, sharpe, skewness, kurtosis } = own
  if (sharpe === null) return null
  const spread = 1 - skewness * sharpe + ((kurtosis - 1) / 4) * sharpe ** 2
  if (spread <= 0) return null
  return normalProbability(((sharpe - chance) * Math.sqrt(observations - 1)) / Math.sqrt(spread))
}

/** Builds the row of each try. `periods` is the number of periods in a year, to annualise the Sharpe ratio. */
export function sweepRows(
  tries: readonly SweepTry[],
  { queries, count }: Preregistration,
  periods: number,
): readonly SweepRow[] {
  const measured = tries.map((one) => ({ ...one, own: statisticsOf(one.returns) }))
  // The same query twice is one try.
  const ratios = new Map(
    measured.flatMap(({ text, own }) => (own.sharpe === null ? [] : [[text, own.sharpe] as const])),
  )
  const chance = expectedBest([...ratios.values()], count)
  const texts = [...new Set(tries.map(({ text }) => text))]
  const hashes = new Map(texts.map((text, n) => [text, queries[n]?.sha256 ?? null]))
  return measured.map(({ parameters, text, own }) => ({
    ...parameters,
    observations: own.observations,
    sharpe: own.sharpe === null ? null : own.sharpe * Math.sqrt(periods),
    deflated_sharpe: deflatedSharpe(own, chance),
    tries: count,
    query_sha256: hashes.get(text) ?? null,
  }))
}

/** Checks that a function returned SQL. */
export function sweepText(text: unknown): string {
  if (typeof text === 'string') return text
  throw usage('sweep: query', {
    expected: 'a function that returns SQL as text',
    got: typeof text,
    next: 'return the query; the lake runs it',
  })
}

/** Builds the query whose answer is these rows. */
export function sweepSql(sweptRows: readonly SweepRow[]): string {
  const cells = sweptRows.map((row) => `(${Object.values(row).map(literal).join(', ')})`).join(', ')
  const names = Object.keys(sweptRows[0] ?? {}).map((name) => quoteName(name))
  const typed = 'CAST(sharpe AS DOUBLE) AS sharpe, CAST(deflated_sharpe AS DOUBLE) AS deflated_sharpe'
  return `SELECT * REPLACE (${typed}) FROM (VALUES ${cells}) AS tries (${names.join(', ')})`
}

/**
 * Returns the numbers of the column of returns, without nulls; other values are refused. The column is found as SQL does:
 * whatever its case, the one that is spelt so before any other.
 */
export function returnsIn(table: Table, name: string): readonly number[] {
  const columns = table.schema.fields.map((field) => field.name)
  const column = columns.find((one) => one === name) ?? columns.find((one) => one.toLowerCase() === name.toLowerCase())
  if (column === undefined)
    throw usage('sweep: returns', { expected: `one of the columns ${columns.join(', ')}`, got: name })
  const values = rows(table).map((row) => row[column])
  const numbers = values.filter((value) => value !== null && value !== undefined).map(Number)
  const strange = numbers.find((value) => !Number.isFinite(value))
  if (strange === undefined) return numbers
  throw usage('sweep: returns', {
    expected: 'finite returns',
    got: String(strange),
    next: 'let the query give NULL there',
  })
}

/** Names the combination at which a try of a sweep failed. */
export function sweepFailure(parameters: SweepParameters, error: LakeError): LakeError {
  const { kind } = error
  // Advice about the lake, such as damage, is the same for every try.
  if (kind === 'integrity' || kind === 'incomplete' || kind === 'busy') return error
  const named = Object.entries(parameters).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return new LakeError(kind, { subject: `sweep at ${named.join(', ')}: ${error.message}`, cause: error })
}

/** Adds numbers, with the rounding errors of each step (Neumaier). */
function sum(values: readonly number[]): number {
  let total = 0
  let lost = 0
  for (const value of values) {
    const next = total + value
    lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total
    total = next
  }
  return total + lost
}

/** Largest distance from zero at which a double distinguishes the normal distribution from 0 or 1. */
const normalEnd = 8.3

/** Computes the distribution function of the standard normal distribution by its power series. */
export function normalProbability(x: number): number {
  if (Math.abs(x) >= normalEnd) return x > 0 ? 1 : 0
  const square = x * x
  let term = x
  let series = x
  for (let odd = 3; Math.abs(term) > Math.abs(series) * 1e-17; odd += 2) {
    term *= square / odd
    series += term
  }
  return Math.min(1, Math.max(0, 0.5 + (series * Math.exp(-square / 2)) / Math.sqrt(2 * Math.PI)))
}

/** Computes the value that the standard normal distribution stays below with a probability, by halving. */
export function normalQuantile(probability: number): number {
  let low = -normalEnd
  let high = normalEnd
  for (let n = 0; n < 80; n++) {
    const middle = (low + high) / 2
    if (normalProbability(middle) < probability) low = middle
    else high = middle
  }
  return (low + high) / 2
}
