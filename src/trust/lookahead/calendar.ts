import { type Engine, quoteName } from '../../lake/store/engine.ts'
import { runAt, type Trial, whereItRuns } from './runs.ts'
import { calendarWorld, decidedSql } from './world.ts'

/*
 * A function gets its decisions from a calendar or a frame that goes on past every cut-off, so how many rows come later stays
 * the same in all of those runs. Here the decisions end at the cut-off, too.
 */

/** Makes `calendar` of a session end where its world says that decisions end. */
export async function endCalendar(session: Engine): Promise<void> {
  const [row] = await session.rows<{ name: string }>('SELECT current_database() AS name')
  const whole = `${quoteName(row?.name ?? '')}.main.calendar(since, until, step := step)`
  await session.run(
    `CREATE OR REPLACE TEMP MACRO calendar(since, until, step := '1 day') AS TABLE
       SELECT own.ts FROM ${whole} AS own WHERE ${decidedSql('own.ts')} ORDER BY own.ts`,
  )
}

/** Fewest runs with an end of the calendar; a fourth of the cut-offs where they are more. */
const fewestEnds = 4

/**
 * Runs a function with decisions that end at instants of its rows, and notes what differs up to there. Gives a note where its
 * rows go on to the end all the same: then it makes instants of its own, and this tells nothing of them.
 */
export async function tryCalendarEnds(trial: Trial): Promise<readonly string[]> {
  const { subject, at, input } = trial
  const { session } = subject
  const instants = await session.rows<{ instant: string }>(
    `SELECT DISTINCT ${at} AS instant FROM proof_full WHERE ${at} IS NOT NULL ORDER BY instant`,
  )
  const ends = chooseEnds(instants.length, Math.max(fewestEnds, Math.floor(input.cutoffs / 4)))
  let goesOn = 0
  for (const end of ends) {
    const cutoff = instants[end]?.instant ?? ''
    await whereItRuns(trial, async () => {
      await runAt(trial, cutoff, calendarWorld(cutoff), 'calendar')
      const [row] = await session.rows<{ on: boolean }>(
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
  'it makes instants of its own: its rows go on where calendar ends, so what depends on how many of them come later was not tried (take them from calendar)'

/**
 * Places of instants at which to end, the last left out. Evenly spread ones could all be the last of their hour or week, so
 * each stands one place further behind its even place than the one before.
 */
export function chooseEnds(count: number, most: number): readonly number[] {
  const places = Array.from({ length: most }, (_, n) => Math.floor((n * (count - 1)) / most) + (n * (n + 1)) / 2)
  return [...new Set(places.map((place) => place % Math.max(1, count - 1)))].toSorted((one, other) => one - other)
}
