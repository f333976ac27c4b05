import { type Engine } from '../../src/lake/store/engine.ts'

/** A figure in words, and whether it is within its bound. */
export interface Measured {
  readonly line: string
  readonly within: boolean
}

/** The words, with the bound that was kept or broken. */
export function judged(line: string, value: number, bound: number, unit = ''): Measured {
  const within = value <= bound
  return { line: `${line} (${within ? 'within' : 'ABOVE'} ${bound}${unit})`, within }
}

/** A figure without a bound. */
export const told = (line: string): Measured => ({ line, within: true })

/** What several ways to the same result took in seconds, one a round; `pitlake` is ours. */
export interface Figure {
  readonly name: string
  readonly times: Readonly<Record<string, readonly number[]>>
}

/** What was measured since it was last taken: the page is made of it. */
export const figures: Figure[] = []

/** Keeps what ways to the same result took for the page. */
export function figure(name: string, times: Figure['times']): void {
  figures.push({ name, times })
}

/** The whole, or what `PITLAKE_BENCH_SHARE=0.01` names: then only errors and results that differ count, no figure. */
export const share = Number(process.env['PITLAKE_BENCH_SHARE'] ?? 1)

/** A size or a number of rounds, or the share of it. */
export const scaled = (whole: number): number => Math.max(1, Math.round(whole * share))

/** The middle one. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/**
 * Runs ways to the same result, each first by turns: what one leaves in caches helps the others as often as it is
 * helped.
 */
export async function byTurns<T>(round: number, ways: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = []
  for (let n = 0; n < ways.length; n++) {
    const place = (n + Math.max(0, round)) % ways.length
    const way = ways[place]
    if (way) results[place] = await way()
  }
  return results
}

/** Fails unless two relations hold the same rows, each as often; gives how many. */
export async function sameRows(engine: Engine, name: string, ours: string, theirs: string): Promise<number> {
  const more = (a: string, b: string): string =>
    `(SELECT count(*) FROM (SELECT * FROM ${a} EXCEPT ALL SELECT * FROM ${b}))`
  const [row] = await engine.rows<{ rows: bigint; more: bigint; less: bigint }>(
    `SELECT (SELECT count(*) FROM ${ours}) AS rows, ${more(ours, theirs)} AS more, ${more(theirs, ours)} AS less`,
  )
  if (row === undefined || row.more !== 0n || row.less !== 0n)
    throw new Error(
      `${name}: the results differ: of ${row?.rows} rows of ours ${row?.more} are not theirs, ${row?.less} of theirs are not ours`,
    )
  return Number(row.rows)
}
