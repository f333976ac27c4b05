import { type Engine, quoteName } from '../../lake/store/engine.ts'
import { searchRuns } from './masked-intervals.ts'
import { decisionColumn, ownRelations } from './own-files.ts'
import { runAt, type Trial, noteIfItFails } from './runs.ts'
import { calendarWorld, decidedSql, type Subject } from './world.ts'

/*
 * Decisions come from a calendar, a series of instants or a frame that goes on past every cut-off, so how many rows
 * come later stays the same in all of those runs. Here the decisions end at the cut-off, too.
 */

/** Ends the `calendar` of a session where its world ends decisions. */
export async function endCalendar(session: Engine): Promise<void> {
  const [row] = await session.rows<{ name: string }>('SELECT current_database() AS name')
  await session.run(calendarEndSql(row?.name ?? ''))
}

/** Builds the statement that ends `calendar`, over that of a database. */
function calendarEndSql(database: string): string {
  return `CREATE OR REPLACE TEMP MACRO calendar(since, until, step := '1 day') AS TABLE
       SELECT own.ts FROM ${quoteName(database)}.main.calendar(since, until, step := step) AS own
       WHERE ${decidedSql('own.ts')} ORDER BY own.ts`
}

/** The engine's functions that make a series of instants; of numbers they make one, too. */
const seriesFunctions = ['range', 'generate_series'] as const

/** SQL of an element of a series as an instant; NULL for a number. */
const elementInstant = `TRY_CAST(CASE WHEN starts_with(typeof(proof_element), 'TIMESTAMP')
   OR typeof(proof_element) = 'DATE'
  THEN CAST(proof_element AS VARCHAR) END AS TIMESTAMPTZ)`

/** Builds the statements that end series of instants where their world ends decisions; series of numbers stay whole. */
function seriesEndSql(): readonly string[] {
  const signatures = ['a', 'a, b', 'a, b, c']
  return seriesFunctions.flatMap((name) => {
    const filtered = signatures.map(
      (signature) =>
        `(${signature}) AS list_filter(system.main.${name}(${signature}), lambda proof_element: ` +
        `${decidedSql(elementInstant)})`,
    )
    // In FROM the engine takes a macro of tables, whose list is the macro of values.
    const rows = signatures.map(
      (signature) => `(${signature}) AS TABLE (SELECT unnest(${name}(${signature})) AS ${name})`,
    )
    return [
      `CREATE OR REPLACE TEMP MACRO ${name}${filtered.join(', ')}`,
      `CREATE OR REPLACE TEMP MACRO ${name}${rows.join(', ')}`,
    ]
  })
}

/**
 * Builds the statements that end series of instants, for a session of any program; calendars, too, if a database is
 * named that has them.
 */
export function decisionEndSql(database: string | null): readonly string[] {
  return [...(database === null ? [] : [calendarEndSql(database)]), ...seriesEndSql()]
}

/** Runs work in sessions whose calendars and series of instants end where their worlds end decisions. */
async function withCalendarEnds<T>(sessions: readonly Engine[], work: () => Promise<T>): Promise<T> {
  try {
    for (const session of sessions) {
      await endCalendar(session)
      for (const sql of seriesEndSql()) await session.run(sql)
    }
    return await work()
  } finally {
    for (const session of sessions) {
      for (const name of seriesFunctions) await session.run(`DROP MACRO IF EXISTS ${name}`)
      for (const name of ['calendar', ...seriesFunctions]) await session.run(`DROP MACRO TABLE IF EXISTS ${name}`)
    }
  }
}

/** Fewest runs with an end of the calendar; a fourth of the cut-offs where they are more. */
const fewestEnds = 4

/**
 * Runs a query or function with decisions that end at instants of its rows, and notes the differences up to there.
 * Returns a note if the rows of a function continue to the end all the same: then it makes instants of its own, and the
 * trial shows nothing about them.
 */
export async function tryCalendarEnds(trial: Trial): Promise<readonly string[]> {
  const { subject, at, input } = trial
  const { session } = subject
  const instants = await session.rows<{ instant: string }>(
    `SELECT DISTINCT ${at} AS instant FROM proof_full WHERE ${at} IS NOT NULL ORDER BY instant`,
  )
  const ends = chooseEnds(instants.length, Math.max(fewestEnds, Math.floor(input.cutoffs / 4)))
  const cutoffs = ends.map((end) => instants[end]?.instant ?? '')
  if (subject.kind === 'function') return await tryFunctionEnds(trial, cutoffs)
  if (await makesInstants(subject))
    await withCalendarEnds([session, ...subject.hands], async () => tryQueryEnds(trial, cutoffs))
  return []
}

/** Whether a query gets instants from a calendar or a series, or from rows of the user's that are decisions. */
async function makesInstants({ session, text, preparation }: Subject): Promise<boolean> {
  if (/\b(?:calendar|range|generate_series)"?\s*\(/i.test([...preparation, text].join('\n'))) return true
  return (await ownRelations(session)).some(
    ({ clock, columns }) => clock === null && decisionColumn(columns) !== undefined,
  )
}

/**
 * Runs a query whose decisions end at these instants, while the points stay: a difference comes from the decisions
 * alone.
 */
async function tryQueryEnds(trial: Trial, cutoffs: readonly string[]): Promise<void> {
  const runs = cutoffs.map((cutoff) => ({ cutoff, world: { proof_calendar: cutoff } }))
  await searchRuns(trial, runs, {
    enough: 1,
    onRun: () => trial.changed++,
    examine: async ({ cutoff, world }) => noteIfItFails(trial, async () => runAt(trial, cutoff, world, 'calendar')),
  })
}

async function tryFunctionEnds(trial: Trial, cutoffs: readonly string[]): Promise<readonly string[]> {
  const { subject, at } = trial
  let goesOn = 0
  for (const cutoff of cutoffs) {
    await noteIfItFails(trial, async () => {
      await runAt(trial, cutoff, calendarWorld(cutoff), 'calendar')
      const [row] = await subject.session.rows<{ on: boolean }>(
        `SELECT (SELECT max(${at}) FROM proof_cut) IS NOT DISTINCT FROM (SELECT max(${at}) FROM proof_full) AS on`,
      )
      if (row?.on === true) goesOn++
    })
    trial.changed++
    if (trial.stories.length > 0) return []
  }
  return goesOn === 0 ? [] : [ownInstants]
}

const ownInstants =
  'it makes instants of its own: its rows go on where calendar ends, so what depends on how many of them come ' +
  'later was not tried (take them from calendar)'

/**
 * Chooses the places of instants at which to end, the last left out. Evenly spread ones could all be the last of their
 * hour or week, so each is one place further behind its even place than the one before.
 */
export function chooseEnds(count: number, most: number): readonly number[] {
  const places = Array.from({ length: most }, (_, n) => Math.floor((n * (count - 1)) / most) + (n * (n + 1)) / 2)
  return [...new Set(places.map((place) => place % Math.max(1, count - 1)))].toSorted((left, other) => left - other)
}
