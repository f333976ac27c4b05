import { microsOf } from '../../base/time.ts'
import { combsFor, otherRuns, runHoles, suspectStates } from './holes.ts'
import { chooseStates, instantsOf, type States } from './states.ts'
import { datedOwn, ownChange } from './own-files.ts'
import { isSameUpTo, runAt, type Trial, whereItRuns } from './runs.ts'
import { changedWorld, seesWorlds, type World } from './world.ts'

type FutureChange = Parameters<typeof changedWorld>[1]

/*
 * The future changed instead of cut. A cut takes later points away with all that follows from it, and does not tell two
 * leaks apart; and it misses a query that falls back, where nothing comes, on what it would have said anyway, such as the
 * smaller of a value and the next one while values rise.
 */

/** What a leak turns on. */
type Dependence = 'values' | 'existence' | 'registry' | ReturnType<typeof ownChange>

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
  for (const { cutoff, world } of await otherRuns(trial, runs, () => trial.changed++))
    if (trial.stories.length === 0) await whereItRuns(trial, async () => runAt(trial, cutoff, world, future))
}

/** A run with another future. */
async function changedRun(trial: Trial, work: () => Promise<void>): Promise<void> {
  await whereItRuns(trial, work)
  trial.changed++
}

/** The edge behind which a cut-off leaves everything to be changed. */
function edgeAt(cutoff: string): string {
  return `[${microsOf(cutoff)}]`
}

/**
 * What a leak turns on, asked at the first and the last cut-off at which it showed: on values where other ones change
 * what is said, on existence where later points without a value make a difference to none at all, on a file of the user's
 * where later rows of it do, and on the registry where what is said hangs on the cut, but on none of these.
 */
export async function dependsOn(trial: Trial): Promise<readonly Dependence[]> {
  if (!(await seesWorlds(trial.subject.session)).changed) return []
  const cutoffs = trial.stories.filter(({ rounding }) => !rounding).map(({ at }) => at)
  const found = new Set<Dependence>()
  for (const cutoff of new Set([cutoffs[0] ?? '', cutoffs.at(-1) ?? ''])) {
    const fill = async (table: string, change: FutureChange): Promise<void> =>
      trial.subject.fill(table, changedWorld(edgeAt(cutoff), change))
    await changedRun(trial, async () => {
      for (const change of ['up', 'down'] as const) {
        if (found.has('values')) break
        await fill('proof_cut', change)
        if (!(await isSameUpTo(trial, cutoff, 'proof_full', 'proof_cut'))) found.add('values')
      }
    })
    await changedRun(trial, async () => {
      if (found.has('existence')) return
      await fill('proof_empty', 'empty')
      await fill('proof_cut', 'gone')
      if (!(await isSameUpTo(trial, cutoff, 'proof_empty', 'proof_cut'))) found.add('existence')
    })
    for (const name of await datedOwn(trial.subject.session))
      await changedRun(trial, async () => {
        await fill('proof_cut', ownChange(name))
        if (!(await isSameUpTo(trial, cutoff, 'proof_full', 'proof_cut'))) found.add(ownChange(name))
      })
  }
  if (found.size === 0 && trial.complaints.length === 0) found.add('registry')
  return [...found].toSorted()
}
