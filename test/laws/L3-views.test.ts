import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import { Agent } from '../helpers/agent.ts'
import { pitlake } from '../helpers/command.ts'
import { listening } from '../helpers/listening.ts'
import { dyingAfterCommit } from '../helpers/mortal-steps.ts'
import { isFullTier } from '../helpers/tiers.ts'
import { newestVersion, openWrittenLake, viewsVersion, type WrittenLake } from '../helpers/lakes/written-by-commands.ts'

/*
 * L3, and what is derived never lags silently: every writing command is killed after its commit, then the same command
 * runs again. Its views are then of the newest version, whether it found something to do or not. Before that every
 * interface is asked: what mends the views answers from the newest version, the others say that they are older.
 * `PITLAKE_KILLS=all` kills before every step after the commit, a number before so many of each command.
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
  /** What runs afterwards where it is not the same command, which would not end by itself. */
  readonly again?: string
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
  preregister: [{ rest: 'sum.sql' }],
  verify: [{ rest: '', from: 'changed' }],
  'violations acknowledge': [{ rest: '--paths * --why known --yes', at: 'differing' }],
  compact: [{ rest: '' }],
  redate: [{ rest: '--config hasty.yaml' }],
  vacuum: [{ rest: '--keep 0s --yes', at: 'owned' }],
  doctor: [{ rest: '--forget-lost', damage: losePoints }],
  pull: [{ rest: 'pub', at: 'mirror' }],
  restore: [{ rest: 'pub', at: 'restored' }],
  watch: [{ rest: '', again: 'daily' }],
}

/**
 * What is tried at each commit: those whose second run finds nothing to do. The others take long, and make views
 * anyhow.
 */
const always = ['fetch', 'import', 'registry snapshot', 'preregister', 'verify', 'violations acknowledge']
/**
 * Commands behind whose kill every interface is asked, which takes long. What an interface finds is the same behind
 * each of them: a lake that is newer than its views. With `PITLAKE_KILLS` it is asked behind all; copies of a mirror
 * would be mirrors.
 */
const askedBehind = isFullTier ? ['fetch', 'preregister', 'vacuum'] : ['preregister']
const isAsked = (command: string): boolean =>
  process.env['PITLAKE_KILLS'] === undefined ? askedBehind.includes(command) : !['pull', 'restore'].includes(command)
const isTried = ([command]: readonly [string, unknown]): boolean => isFullTier || always.includes(command)

const cases = Object.entries(writing)
  .filter(isTried)
  .flatMap(([command, all]) => all.map((one) => [`${command} ${one.rest}`.trim(), command, one] as const))

describe('a command killed after its commit', () => {
  test.each(cases)(
    '%s run again leaves current views',
    async (_, command, { rest, at = 'data', from, again, damage }) => {
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
        if (isAsked(command)) await askEveryInterface(root)
        await pitlake(lake.home, again === undefined ? argv : [again, '--data', at], env)
        expect({ dieAt, views: viewsVersion(root) }).toEqual({ dieAt, views: newestVersion(root) })
        expect(await askedInProgram(root)).toEqual({ version: newestVersion(root), notes: [] })
      }
    },
  )
})

const version = 'SELECT version FROM lake_info'

/** What the library answers, which never makes views. */
async function askedInProgram(root: string): Promise<unknown> {
  const opened = await openLake(root)
  try {
    const answer = await opened.sql(version)
    return { version: Number(answer.get(0)?.version), notes: opened.notes }
  } finally {
    await opened.close()
  }
}

/** Asks copies of a lake that was left by a kill: each interface mends the views first, or says that they are older. */
async function askEveryInterface(root: string): Promise<void> {
  const newest = newestVersion(root)
  const made = viewsVersion(root)
  const words = `the views of this lake are of version ${made}, the lake is at ${newest}: run pitlake views`
  expect(await askedInProgram(root)).toEqual({ version: made, notes: made === newest ? [] : [words] })
  const copy = join(lake.home, 'left')
  const begin = (): void => {
    rmSync(copy, { recursive: true, force: true })
    cpSync(root, copy, { recursive: true })
  }
  begin()
  await pitlake(lake.home, ['sql', version, '--data', copy, '--out', 'answer.csv'])
  expect([readFileSync(join(lake.home, 'answer.csv'), 'utf8'), viewsVersion(copy)]).toEqual([
    `version\n${newest}\n`,
    newest,
  ])
  begin()
  const door = await listening(copy, ['serve'])
  const answer = await (await fetch(`${door.url}/query?sql=${encodeURIComponent(version)}`)).json()
  await door.stop()
  expect(answer).toEqual({ version: newest })
  if (!isFullTier) return
  begin()
  await using agent = await Agent.at(copy)
  const asked = await agent.one('query', { sql: 'SELECT count(*) AS n FROM points', as_of: '2030-01-01' })
  expect(asked.lake.version).toBe(newest)
}

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
/**
 * Commands that have what a commit needs and make none in the lake of the call: they write to files of the user, keep
 * metadata or heads for later, or have a lake of their own (`demo`).
 */
const neverCommitting = ['plan', 'certify', 'head', 'stress', 'demo', 'init']

test.each([
  ['stamp', 'sum.sql --out again.parquet'],
  ['publish', 'elsewhere'],
  ['backup', 'kept'],
])('%s makes no version and leaves current views', async (command, rest) => {
  lake.begin()
  const before = newestVersion(join(lake.home, 'data'))
  const argv = [command, ...rest.split(' '), '--data', 'data']
  const { code } = await pitlake(lake.home, argv, lake.environment('sound'))
  const root = join(lake.home, 'data')
  expect([code, newestVersion(root), viewsVersion(root)]).toEqual([0, before, before])
})

/** The text of a command and of the functions of its module that it calls. */
function textReachedBy(module: string, start: string): string {
  const functions = new Map(
    [...module.matchAll(/^(?:export )?(?:async )?function (\w+)[\s\S]*?^\}$/gm)].map(([text, name = '']) => [
      name,
      text,
    ]),
  )
  const reached = new Set<string>([start])
  for (const text of reached)
    for (const [name, body] of functions) if (new RegExp(`\\b${name}\\(`).test(text)) reached.add(body)
  return [...reached].join('\n')
}

test('a command that has what a commit needs declares `viewsAfter`, or is known to need no views', async () => {
  const folder = new URL('../../src/interfaces/commands/', import.meta.url)
  const modules = readdirSync(folder).filter((name) => name.endsWith('.ts'))
  const texts = modules.map((name) => readFileSync(new URL(name, folder), 'utf8'))
  const specs = await Promise.all(commandTable.map(async ({ load }) => await load()))
  const silent = specs.flatMap(({ name, viewsAfter }) => {
    const own = `${name.replaceAll(/[ -](\w)/g, (_, first: string) => first.toUpperCase())}Command = `
    const module = texts.find((text) => text.includes(`export const ${own}`)) ?? ''
    const block = module.slice(module.indexOf(`export const ${own}`)).split(/^\}\)$/m, 1)[0] ?? ''
    const commits = /\b(?:lake|asking|completing)World\(/.test(textReachedBy(module, block))
    return commits && viewsAfter !== true ? [name] : []
  })
  expect(silent.toSorted()).toEqual([...makingViews, ...neverCommitting].toSorted())
})

test('a command that is added to the table is killed here, or says that it does not commit', async () => {
  const specs = await Promise.all(commandTable.map(async ({ load }) => await load()))
  const named = specs.filter(({ viewsAfter }) => viewsAfter === true).map(({ name }) => name)
  const killed = [...Object.keys(writing), ...recording].filter((name) => !makingViews.includes(name))
  expect(named.toSorted()).toEqual(killed.toSorted())
})
