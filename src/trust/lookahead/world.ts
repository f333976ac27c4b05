import { ruledSql } from '../../sources/points/files.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { openIfAlterable } from '../../query/altered-lake.ts'
import { openQuery, type QueryOptions, type SessionVariables } from '../../query/lake.ts'
import { dropMade, runPreparation } from './preparation.ts'
import { Remembered } from '../../query/parse-tree.ts'
import type { IsNeeded } from '../../query/views/script.ts'
import { backfillSql, betweenEdges, instantSql, unsetSql } from '../../query/views/template.ts'

/*
 * A world is the part of the lake that a run of a look-ahead proof sees: all of it, the data known at a timestamp, or a
 * lake whose later data are altered: other values, or other points. Session variables tell, so that one session sees
 * them all.
 */

/** Session variables by name, with a text that the views read; the whole lake if there are none. */
export type World = Readonly<Record<string, string>>

/** Removes from session variables the one that a proof sets itself. */
export function withoutAsOf(variables: SessionVariables): SessionVariables {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => name.toLowerCase() !== 'as_of'))
}

/** The lake as it is. */
export const wholeLake: World = {}

/**
 * Change of the points behind a cut-off. Of values: `up` and `down` make all of them larger or smaller, by factors of
 * their own. Of existence: `half` takes every other point away, `gone` all. `empty` keeps them, without a value. `own`
 * and a name leaves them as they are, and takes away rows of the user's.
 */
export type FutureChange = 'up' | 'down' | 'half' | 'empty' | 'gone' | `own ${string}`

/** Returns the world of the lake without what arrived behind an odd number of edges, an SQL list of microseconds. */
export const hiddenWorld = (edges: string): World => ({ proof_hidden: edges })

/** Returns the world of the lake in which data that arrived behind an odd number of edges are changed. */
export const changedWorld = (edges: string, change: FutureChange): World => ({
  proof_changed: edges,
  proof_change: change,
})

/** Returns the world of the lake cut at an instant, in which calendars and decisions end there, too. */
export const calendarWorld = (at: string): World => ({ as_of: at, proof_calendar: at })

const availableSql = `CASE WHEN ${backfillSql} THEN ${ruledSql('real')} ELSE real.available_at END`
const isChanged = betweenEdges('proof_changed', availableSql)
const later = `CASE WHEN ${unsetSql('proof_changed')} THEN false ELSE ${isChanged} END`
const seriesHash = 'hash(real.metric, real.asset, real."interval", real.currency, real.exchange, real.network, real.t)'
const factor = `CASE ${seriesHash} % 4 WHEN 0 THEN 1.25 WHEN 1 THEN 2 WHEN 2 THEN 7 ELSE 1000 END`
const isChange = (...changes: FutureChange[]): string =>
  `CAST(getvariable('proof_change') AS VARCHAR) IN (${changes.map(quote).join(', ')})`

/**
 * The points of all these worlds. Signs stay, so that roots and logarithms go on; a value that is null or 0 becomes one
 * that is not, and in objects every number becomes another.
 */
export const changedPoints = `SELECT real.* REPLACE (
    CASE WHEN ${later} THEN CASE WHEN ${isChange('empty')} THEN NULL
      WHEN ${isChange('up', 'down')} AND (real.v IS NOT NULL OR real.o IS NULL) THEN coalesce(nullif(real.v, 0), 1)
        * CASE WHEN ${isChange('up')} = (coalesce(real.v, 1) >= 0) THEN ${factor} ELSE 1 / (${factor}) END
      ELSE real.v END ELSE real.v END AS v,
    CASE WHEN ${later} THEN CASE WHEN ${isChange('empty')} THEN NULL
      WHEN ${isChange('up')} THEN regexp_replace(real.o, '([:\\[,]\\s*-?)([0-9])', '\\11\\2', 'g')
      WHEN ${isChange('down')} THEN regexp_replace(real.o, '([:\\[,]\\s*-?)[0-9]+', '\\10', 'g')
      ELSE real.o END ELSE real.o END AS o)
  FROM {{real}} AS real
  WHERE NOT (${later} AND (${isChange('gone')} OR (${isChange('half')} AND ${seriesHash} % 2 = 0)))`

/** Builds the condition that a decision of an instant exists in the world of a session. */
export function decidedSql(at: string): string {
  return `coalesce(${at} <= ${instantSql('proof_calendar')}, true)`
}

/**
 * Opens a lake so that its session can see all worlds; where its views are of another program, only those that are cut.
 * With the text of a script, it has only the views and macros that this script can read, and those of a trial: to make
 * all of them takes longer than all runs of a small query.
 */
export async function openWorlds(folder: string, options: QueryOptions = {}, script?: string): Promise<Engine> {
  const needed = script === undefined ? undefined : neededBy(script)
  const altered = await openIfAlterable(folder, changedPoints, { ...options, ...(needed && { needed }) })
  return altered ?? (await openQuery(folder, options))
}

/** Views and macros that a trial reads by itself, and those of the notes about a query. */
const readByTrials = /^(?:points|endpoints|lake_\w+|calendar|sessions|nearest\w*|question_\w+)$/
/** Words of a script that may read objects without naming them: lists of what there is, and names that are computed. */
const readsUnnamed =
  /duckdb_|information_schema|pg_|sqlite_|pragma|\b(?:show|describe|summarize)\b|\bquery(?:_table)?"?\s*\(/i

/**
 * Returns the test of whether a script may read an object, by its text: each whose name occurs anywhere in it.
 * Undefined if the text does not show what it reads.
 */
function neededBy(script: string): IsNeeded | undefined {
  if (readsUnnamed.test(script)) return undefined
  const text = script.toLowerCase()
  // Without the registry's history a trial would not find the times of its polls.
  return (name, schema) => schema === 'history' || readByTrials.test(name) || text.includes(name.toLowerCase())
}

/** Changes of the points that the views of a session can show. */
interface WorldsSeen {
  readonly hidden: boolean
  readonly changed: boolean
}

const worldsSeen = new Remembered<WorldsSeen>()

/** Whether a session sees points that are hidden or changed, too; the views of another program do not know of them. */
export async function seesWorlds(session: Engine): Promise<WorldsSeen> {
  return await worldsSeen.of(session, 'points', async () => {
    const [row] = await session.rows<{ hidden: boolean; changed: boolean }>(
      `SELECT coalesce(bool_or(contains(v.sql, 'proof_hidden')), false) AS hidden,
         coalesce(bool_or(contains(v.sql, 'proof_changed')), false) AS changed
       FROM system.main.duckdb_views() AS v WHERE v.view_name = 'points'`,
    )
    return { hidden: row?.hidden === true, changed: row?.changed === true }
  })
}

/** Lets a session see a world from here on; what only another world says is forgotten. */
export async function enterWorld(session: Engine, world: World): Promise<void> {
  const names = ['as_of', 'proof_hidden', 'proof_changed', 'proof_change', 'proof_calendar']
  const quotedSetting = (name: string): string => (Object.hasOwn(world, name) ? quote(world[name] ?? '') : 'NULL')
  await session.run(names.map((name) => `SET VARIABLE ${name} = ${quotedSetting(name)}`).join('; '))
}

/** Query or function on trial: it returns its rows again in one world after the other. */
export interface Subject {
  readonly session: Engine
  /** Text of the query, which names the metrics that it reads; one SELECT if there is a plan to examine. */
  readonly text: string
  readonly kind: 'SQL' | 'function'
  /** The statements before a query, which run again in each world. */
  readonly preparation: readonly string[]
  /** Sessions in which its runs may be tried in addition to that one. */
  readonly hands: readonly Engine[]
  /** Writes its rows in a world into a temporary table. */
  readonly fill: (table: string, world: World) => Promise<void>
  readonly within: WorldReader
  /** SQL with which it queried the lake so far. */
  readonly askedQueries: () => readonly string[]
}

/** Runs work with a relation, for FROM, of the rows that a query returns in a world, in any of its sessions. */
export type WorldReader = <T>(session: Engine, world: World, work: (rows: string) => Promise<T>) => Promise<T>

/** Statements before a query, its text for readers, and its sessions. */
interface QueryMeans {
  readonly preparation?: readonly string[] | undefined
  readonly text?: string | undefined
  readonly hands?: readonly Engine[] | undefined
}

/** Builds the subject of a proof from a query. */
export function querySubject(
  session: Engine,
  sql: string,
  { preparation = [], text = sql, hands = [] }: QueryMeans = {},
): Subject {
  const within: WorldReader = async (reader, world, work) => {
    await enterWorld(reader, world)
    try {
      await runPreparation(reader, preparation)
      return await work(`(\n${sql}\n) AS proof_rows`)
    } finally {
      await enterWorld(reader, wholeLake)
      await dropMade(reader, preparation)
    }
  }
  const fill = async (table: string, world: World): Promise<void> => {
    await within(session, world, async () => session.run(`CREATE OR REPLACE TEMP TABLE ${table} AS ${sql}`))
  }
  return { session, text, kind: 'SQL', preparation, hands, fill, within, askedQueries: () => [text] }
}
