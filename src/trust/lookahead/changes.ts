import { microsOf } from '../../base/time.ts'
import { registryIsRead } from './cause.ts'
import { combsFor, runHoles, searchRuns, suspectStates } from './masked-intervals.ts'
import { chooseStates, instantsOf, type States } from './knowledge-states.ts'
import { datedOwn, ownChange } from './own-files.ts'
import { type Dependence, isSameUpTo, runAt, type Trial, noteIfItFails } from './runs.ts'
import { changedWorld, type FutureChange, seesWorlds, type World } from './world.ts'

/*
 * The future changed instead of cut. A cut takes later points away with all that follows from it, and does not tell two
 * leaks apart; and it misses a query that falls back, where nothing comes, on what it would have said anyway, such as
 * the smaller of a value and the next one while values rise.
 */

/** Tries futures in which later points have larger values, then smaller ones, then every other one is missing. */
export async function tryChanges(trial: Trial, states: States): Promise<void> {
  if (!(await seesWorlds(trial.subject.session)).changed) return
  const { session } = trial.subject
  const most = trial.input.cutoffs
  const quarter = Math.floor(most / 4)
  const isFew = states.count <= Math.floor(most / 3) || most < 12
  const counted = (): void => void trial.changed++
  const up = (edges: string): World => changedWorld(edges, 'up')
  const combs = isFew ? 0 : await combsFor(trial, states, { most: quarter + 2, usual: quarter }, up, counted)
  const room = combs === 0 ? 0 : Math.max(2, Math.round(most / 10))
  const direct = Math.max(1, Math.floor((most - trial.changed - 2 * combs - room) / 3))
  if (combs > 0) {
    for (const [turn, change] of (['up', 'down'] as const).entries())
      for (let run = 0; run < combs; run++)
        await changedRun(trial, async () =>
          runHoles(trial, {
            every: combs,
            run,
            label: turn * combs + run,
            world: (edges) => changedWorld(edges, change),
          }),
        )
    for (const suspect of await suspectStates(session, states.count, room))
      for (const change of ['up', 'down'] as const) await changeAt(trial, [suspect], change)
  }
  const chosen = await chooseStates(session, states, direct, 'even')
  for (const change of ['up', 'down', 'half'] as const)
    if (trial.stories.length === 0) await changeAt(trial, chosen, change)
}

async function changeAt(trial: Trial, chosen: readonly number[], change: FutureChange): Promise<void> {
  const cutoffs = await instantsOf(trial.subject.session, chosen)
  const runs = cutoffs.map((cutoff) => ({ cutoff, world: changedWorld(edgeAt(cutoff), change) }))
  const future = change === 'half' ? 'other points' : 'other values'
  await searchRuns(trial, runs, {
    enough: 1,
    onRun: () => trial.changed++,
    examine: async ({ cutoff, world }) => noteIfItFails(trial, async () => runAt(trial, cutoff, world, future)),
  })
}

/** Runs a trial with altered data. */
async function changedRun(trial: Trial, work: () => Promise<void>): Promise<void> {
  await noteIfItFails(trial, work)
  trial.changed++
}

/** Formats the edge behind which a cut-off leaves everything to be changed. */
function edgeAt(cutoff: string): string {
  return `[${microsOf(cutoff)}]`
}

/**
 * Finds the data on which a leak depends, at the first and the last cut-off at which it showed, step by step from the
 * whole lake to the cut one: other values of later points, or none; then later points away; then user rows; the rest of
 * the difference to the cut is the registry, if it is read.
 */
export async function dependsOn(trial: Trial): Promise<readonly Dependence[]> {
  const stories = trial.stories.filter(({ rounding }) => !rounding)
  if (trial.differences.some(({ future }) => future === 'calendar')) return ['calendar']
  if (!(await seesWorlds(trial.subject.session)).changed) return []
  const found = new Set<Dependence>()
  const readsRegistry = await registryIsRead(trial.subject.session, trial.subject.askedQueries())
  for (const cutoff of new Set([stories[0]?.at ?? '', stories.at(-1)?.at ?? '']))
    for (const step of await stepsBefore(trial, cutoff, readsRegistry)) await changedRun(trial, async () => step(found))
  if (found.size === 0)
    for (const { future } of trial.differences) {
      if (future === 'other values') found.add('values')
      if (future === 'other points') found.add('existence')
    }
  return [...found].toSorted()
}

type Step = (found: Set<Dependence>) => Promise<void>

/** Builds the steps from the whole lake to the one that is cut at an instant, each of which finds what it shows. */
async function stepsBefore(trial: Trial, cutoff: string, readsRegistry: boolean): Promise<readonly Step[]> {
  const changed = (change: FutureChange): World => changedWorld(edgeAt(cutoff), change)
  const differs = async (table: string): Promise<boolean> => !(await isSameUpTo(trial, cutoff, table, 'proof_cut'))
  const datedTables = await datedOwn(trial.subject.session)
  const values: Step = async (found) => {
    for (const change of ['up', 'down', 'empty'] as const) {
      if (found.has('values')) return
      await trial.subject.fill('proof_cut', changed(change))
      if (await differs('proof_full')) found.add('values')
    }
  }
  const existence: Step = async (found) => {
    if (found.has('existence')) return
    await trial.subject.fill('proof_empty', changed('empty'))
    await trial.subject.fill('proof_cut', changed('gone'))
    if (await differs('proof_empty')) found.add('existence')
  }
  const ofOwn = datedTables.map(
    (name): Step =>
      async (found) => {
        await trial.subject.fill('proof_cut', changed(ownChange(name)))
        if (await differs('proof_full')) found.add(ownChange(name))
      },
  )
  const registry: Step = async (found) => {
    // A cut also removes user data, which no change of points does.
    if (!readsRegistry || datedTables.some((name) => found.has(ownChange(name)))) return
    await trial.subject.fill('proof_empty', changed('gone'))
    await trial.subject.fill('proof_cut', { as_of: cutoff })
    if (await differs('proof_empty')) found.add('registry')
  }
  return [values, existence, ...ofOwn, registry]
}
