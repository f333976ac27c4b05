import type { Ledger } from '../ledger/ledger.ts'
import { quote } from '../store/engine.ts'
import type { RunDeps } from '../query/run.ts'
import type { SeenLags, StressAgain } from './stress-delays.ts'
import { withVintages } from './vintages.ts'
import type { PinnedQuery } from './pinned.ts'
import { stress, type Stressed, type StressInput } from './stress.ts'

/** A stress that is to be stamped, with so many earlier versions. */
export interface StressAsked extends StressInput {
  readonly vintages: number
}

/** Tries a figure over a pinned version: the outcome, its rows as SQL, and what is needed to try it once more. */
export async function tryFigure(
  ledger: Ledger,
  pinned: PinnedQuery,
  { vintages, ...input }: StressAsked,
  run: RunDeps,
): Promise<{ readonly outcome: Stressed; readonly rows: string; readonly again: StressAgain }> {
  const source = withVintages(ledger, pinned, vintages)
  let told: readonly SeenLags[] = []
  const seen = async (metrics: readonly string[]): Promise<readonly SeenLags[]> => (told = await input.seen(metrics))
  const outcome = await stress(source, { ...input, seen }, run)
  const { figure, lags, latencies, within } = input
  return {
    outcome,
    rows: rowsSql(outcome),
    again: { figure, lags, latencies, within, seen: told, vintages: source.vintages },
  }
}

/** The rows of the same, tried once more. */
export async function tryFigureAgain(
  source: PinnedQuery,
  { seen, vintages, ...input }: StressAgain,
  run: RunDeps,
): Promise<string> {
  return rowsSql(
    await stress({ ...source, vintages }, { ...input, seen: async () => await Promise.resolve(seen) }, run),
  )
}

const types = {
  kind: 'VARCHAR',
  name: 'VARCHAR',
  rows: 'BIGINT',
  changed: 'BIGINT',
  figure: 'DOUBLE',
  moved: 'DOUBLE',
  falls: 'BOOLEAN',
  share: 'DOUBLE',
} as const

type StampedRun = Readonly<Partial<Record<keyof typeof types, string | number | boolean | null>>>

/** An outcome as rows: the lake as it is, each run, each metric alone, and the verdict, in this order. */
function rowsSql({ verdict, figure, rows, runs, metrics, bears_seconds: borne }: Stressed): string {
  const told: StampedRun[] = [
    { kind: 'as it is', rows, figure },
    ...runs,
    ...metrics.map(({ metric: name, ...share }) => ({ kind: 'metric', name, ...share })),
    { kind: 'bears', name: 'seconds', figure: borne },
    { kind: 'verdict', name: verdict },
  ]
  const cell = (value: StampedRun[keyof StampedRun], type: string): string =>
    `CAST(${value === null || value === undefined ? 'NULL' : quote(String(value))} AS ${type})`
  const lines = told.map((one, place) => {
    const cells = Object.entries(types).map(([name, type]) => cell(one[name as keyof StampedRun], type))
    return `(${[place, ...cells].join(', ')})`
  })
  const names = Object.keys(types).join(', ')
  return `SELECT ${names} FROM (VALUES ${lines.join(',\n ')}) AS told (place, ${names}) ORDER BY place`
}
