import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Engine } from '../../src/store/engine.ts'
import { openQuery } from '../../src/query/lake.ts'
import type { Ended } from '../helpers/command.ts'
import { harms, type Lakes, makeLakes, placeOf } from '../helpers/damages.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import { shareOf } from '../helpers/shares.ts'

let rig: Rig
let home: string
let lakes: Lakes
let run: ReturnType<typeof placeOf>
let finish: () => void = () => undefined
let ended: Promise<void>
let truth: readonly string[]
let registry: string

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'pitlake-pairs-'))
  await new Promise<void>((ready, fail) => {
    ended = withRig(Date.UTC(2024, 3, 20, 12) / 1000, async (opened) => {
      rig = opened
      run = placeOf(rig)
      lakes = await makeLakes(rig, home)
      truth = await pointsOf(lakes.sound)
      registry = await productsOf(fresh())
      await new Promise<void>((done) => {
        finish = done
        ready()
      })
    })
    ended.catch(fail)
  })
})

afterAll(async () => {
  finish()
  await ended
  rmSync(home, { recursive: true, force: true })
})

const columns = 'metric, asset, "interval", currency, t, v, available_at, observed_at'

/** Every point that ever stood in a file of the lake, read by nothing of ours. */
async function pointsOf(root: string): Promise<string[]> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run("SET TimeZone = 'UTC'")
  const from = (pattern: string, hive: boolean): string =>
    `FROM read_parquet('${join(root, pattern)}', hive_partitioning = ${hive}, union_by_name = true)`
  const rows = await engine.rows(`SELECT to_json(r) AS line FROM (SELECT DISTINCT ${columns} FROM (
    SELECT * ${from('points/metric=*/**/*.parquet', true)} UNION ALL BY NAME SELECT * ${from('points/recent/*.parquet', false)})) r ORDER BY 1`)
  return rows.map(({ line }) => String(line))
}

/** A copy of the sound lake where it was made. */
function fresh(): string {
  const root = join(home, 'lake')
  rmSync(root, { recursive: true, force: true })
  cpSync(lakes.sound, root, { recursive: true })
  return root
}

/** What the views answer, a line a row. */
async function asked(root: string, sql: string): Promise<string[]> {
  const session = await openQuery(root)
  try {
    return (await session.rows(`SELECT to_json(r) AS line FROM (${sql}) r ORDER BY 1`)).map(({ line }) => String(line))
  } finally {
    session.close()
  }
}

const productsOf = async (root: string): Promise<string> =>
  (await asked(root, 'FROM history.products')).join()

interface Way {
  readonly steps: readonly string[]
  readonly said: string
  readonly last: Ended
}

/** What a person does who does what doctor says, word by word: what it says first, and what each command says then. */
async function follow(root: string): Promise<Way> {
  const steps: string[] = []
  let said = ''
  let last = await run(root, 'doctor')
  for (;;) {
    said += `${last.out}${last.message}\n`
    const advice = /pitlake ([a-z]+(?: --[a-z-]+)*)/.exec(last.message)?.[1]
    if ((last.code === 0 && steps.length === 0) || steps.length > 4) return { steps, said, last }
    if (last.code === 0) {
      last = await run(root, 'doctor')
      if (last.code === 0) return { steps, said: said + last.out, last }
      continue
    }
    if (advice === undefined) return { steps, said, last }
    steps.push(advice)
    last = await run(root, ...advice.split(' '))
  }
}

const all = Object.keys(harms)
const pairs = all.flatMap((one, n) => [[one, one], ...all.slice(n + 1).map((other) => [one, other])]) as [string, string][]

describe('L3', () => {
  test.each(process.env['ONE'] ? pairs.filter(([a, b]) => new RegExp(process.env['ONE'] ?? '').test(`${a}, ${b}`)) : shareOf(pairs, 20))('%s, %s: doctor', async (one, other) => {
    const root = fresh()
    for (const name of new Set([one, other])) harms[name]?.(root, lakes)
    const { steps, said, last } = await follow(root)
    const names = `${one} ${other}`
    const about = `${steps.join(' | ')}\n${said}`
    if (names.includes('newer')) {
      expect(last, about).toMatchObject({ code: 2, message: expect.stringContaining('update the program') })
      return
    }
    expect([last.code, steps.length <= 4 && new Set(steps).size === steps.length], about).toEqual([0, true])
    const { version } = JSON.parse((await run(root, 'doctor', '--json')).out) as { version: number }
    expect(await asked(root, 'SELECT version FROM lake_info')).toEqual([JSON.stringify({ version })])
    const held = await asked(root, `SELECT ${columns} FROM points`)
    const missing = truth.filter((line) => !held.includes(line))
    expect(held.filter((line) => !truth.includes(line)), about).toEqual([])
    if (missing.length > 0) expect(said).toMatch(/\blost\b/)
    if (await productsOf(root) !== registry) expect(said).toMatch(/registry/)
  })
})
