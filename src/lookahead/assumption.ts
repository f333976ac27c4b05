import type { Engine } from '../store/engine.ts'

/** A setting that lets something count as known before anybody could know it. */
export type Setting = 'backfill' | 'registry_backfill'

/** What an answer rests on beside what was known. */
export interface Assumed {
  readonly what: Setting
  /** How many of its rows are others, or not there at all, without it. */
  readonly rows: number
  /** How many more rows there would be without it. */
  readonly absent: number
}

/** The settings of a session that assume something. */
export async function settingsIn(session: Engine): Promise<ReadonlySet<Setting>> {
  const [row] = await session.rows(
    `SELECT coalesce(CAST(getvariable('backfill') AS VARCHAR) = 'rule', false) AS backfill,
       coalesce(TRY_CAST(getvariable('registry_backfill') AS BOOLEAN), false) AS registry_backfill`,
  )
  return new Set((['backfill', 'registry_backfill'] as const).filter((name) => row?.[name] === true))
}

const words: Readonly<Record<Setting, string>> = {
  backfill: 'backfilled points were known by their rule (backfill)',
  registry_backfill: 'the first snapshot of the registry held before it was taken (registry_backfill)',
}

/** What `rows` rows rest on, as the end of a sentence: `given that …: 5 of 7 rows are assumed`; empty for nothing. */
export function givenThat(assumes: readonly Assumed[], rows: number): string {
  const number = (count: number): string => count.toLocaleString('en-US')
  const said = assumes.map(
    ({ what, rows: own, absent }) =>
      `${words[what]}: ${number(own)} of ${number(rows)} rows are assumed${absent === 0 ? '' : `, ${number(absent)} more would be there`}`,
  )
  return said.length === 0 ? '' : `given that ${said.join('; and that ')}`
}
