import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import { pitlake } from '../helpers/command.ts'
import { dyingAfterCommit } from '../helpers/mortal-steps.ts'
import { isFullTier } from '../helpers/tiers.ts'
import { newestVersion, openWrittenLake, viewsVersion, type WrittenLake } from '../helpers/written-lake.ts'

/*
 * L3, and what is derived never lags silently: every writing command is killed after its commit, then the same command
 * runs again. Its views are then of the newest version, whether it found something to do or not. `PITLAKE_KILLS=all` kills
 * before every step after the commit, a number before so many of each command.
 */

let lake: WrittenLake
beforeAll(async () => (lake = await openWrittenLake()))
afterAll(async () => await lake[Symbol.asyncDispose]())

/** A command that may commit. */
interface Writing {
  /** What stands behind its name. */
  readonly rest: string
  /** Folder of the lake that it writes to: `data` unless said. */
  readonly at?: string
  readonly from?: 'changed'
  /** Damages the lake first. */
  readonly damage?: (root: string) => void
}

const losePoints = (root: string): void => {
  for (const name of readdirSync(join(root, 'points'), { recursive: true }).map(String))
    if (name.endsWith('.parquet')) rmSync(join(root, 'points', name))
}

/** Each command of the table that may commit, with what it does here. */
const writing: Readonly<Record<string, readonly Writing[]>> = {
  fetch: [{ rest: '' }],
  import: [{ rest: 'own.csv --as y --available end' }],
  features: [{ rest: '--config features.yaml' }],
  'registry snapshot': [{ rest: '' }],
  'registry sync': [{ rest: '' }],
  daily: [{ rest: '' }],
  try: [{ rest: 'sum.sql' }],
  verify: [{ rest: '', from: 'changed' }],
  'violations accept': [{ rest: '--paths * --why known --yes', at: 'differing' }],
  compact: [{ rest: '' }, { rest: '--redate --config hasty.yaml' }],
  vacuum: [{ rest: '--keep 0s --yes', at: 'owned' }],
  doctor: [{ rest: '--forget-lost', damage: losePoints }],
  pull: [{ rest: 'pub', at: 'mirror' }],
  restore: [{ rest: 'pub', at: 'restored' }],
}

/** What is tried at each commit: those whose second run finds nothing to do. The others take long, and make views anyhow. */
const always = ['fetch', 'import', 'registry snapshot', 'try', 'verify', 'violations accept']
const isTried = ([command]: readonly [string, unknown]): boolean => isFullTier || always.includes(command)

const cases = Object.entries(writing)
  .filter(isTried)
  .flatMap(([command, all]) => all.map((one) => [`${command} ${one.rest}`.trim(), command, one] as const))

describe('a command killed after its commit', () => {
  test.each(cases)('%s run again leaves current views', async (_, command, { rest, at = 'data', from, damage }) => {
    const root = join(lake.home, at)
    const argv = [...command.split(' '), ...rest.split(' ').filter(Boolean), '--data', at]
    const env = lake.environment(from ?? 'sound')
    const begin = (): void => {
      lake.begin()
      damage?.(root)
    }
    for (const dieAt of await deathsOf(async () => {
      begin()
      return (await dyingAfterCommit(argv, { cwd: lake.home, env }, 0)).steps ?? 0
    })) {
      begin()
      const { code } = await dyingAfterCommit(argv, { cwd: lake.home, env }, dieAt)
      expect({ dieAt, code }).toEqual({ dieAt, code: null })
      await pitlake(lake.home, argv, env)
      expect({ dieAt, views: viewsVersion(root) }).toEqual({ dieAt, views: newestVersion(root) })
    }
  })
})

/** Before which steps after its commit a command is killed: the first, or as many of them as the environment says. */
async function deathsOf(count: () => Promise<number>): Promise<readonly number[]> {
  const kills = process.env['PITLAKE_KILLS']
  if (kills === undefined) return [1]
  const steps = await count()
  const deaths = kills === 'all' ? steps : Math.min(steps, Number(kills))
  return Array.from({ length: deaths }, (_, n) => 1 + Math.floor((n * steps) / deaths))
}

/** Commands that leave views to themselves: they always make them, or are told to mend. */
const makingViews = ['views', 'doctor', 'pull', 'restore']
/** Commands that write down runs and stamps, which views show, and whose commits are none but a change of layout. */
const recording = ['stamp', 'publish', 'backup']

test('a command that is added to the table is killed here, or says that it does not commit', async () => {
  const specs = await Promise.all(commandTable.map(async ({ load }) => await load()))
  const named = specs.filter(({ viewsAfter }) => viewsAfter === true).map(({ name }) => name)
  const killed = [...Object.keys(writing), ...recording, 'watch'].filter((name) => !makingViews.includes(name))
  expect(named.toSorted()).toEqual(killed.toSorted())
})
