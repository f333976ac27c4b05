// @module-tag slow
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Engine } from '../../src/lake/store/engine.ts'
import { openQuery } from '../../src/query/lake.ts'
import type { Ended } from '../helpers/command.ts'
import { harms, type Lakes, makeLakes, others, placeOf } from './damages.ts'
import { rigOfFile } from '../helpers/rig-of-file.ts'
import { scratch } from '../helpers/scratch.ts'
import { sample } from '../helpers/tiers.ts'

const home = scratch('pairs')
let lakes: Lakes
let run: ReturnType<typeof placeOf>
let truth: Pick<Awaited<ReturnType<typeof asked>>, 'points' | 'products'>
rigOfFile(Date.UTC(2024, 3, 20, 12) / 1000, async (rig) => {
  run = placeOf(rig)
  lakes = await makeLakes(rig, home)
  const { products } = await asked(fresh())
  truth = { points: await pointsOf(lakes.sound), products }
})

const columns = 'metric, asset, "interval", currency, epoch_us(t) AS t, v, available_at, observed_at'

/** Every point that ever stood in a file of the lake, read by nothing of ours. */
async function pointsOf(root: string): Promise<string[]> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run("SET TimeZone = 'UTC'")
  const from = (pattern: string, hive: boolean): string =>
    `FROM read_parquet('${join(root, pattern)}', hive_partitioning = ${hive}, union_by_name = true)`
  const rows = await engine.rows<{ line: string }>(`SELECT to_json(r) AS line FROM (SELECT DISTINCT ${columns} FROM (
    SELECT * ${from('points/metric=*/**/*.parquet', true)} UNION ALL BY NAME SELECT * ${from('points/recent/*.parquet', false)})) r ORDER BY 1`)
  return rows.map(({ line }) => line)
}

/** What the views say: the version that they are of, each point, and each version of a product. */
async function asked(root: string) {
  using session = await openQuery(root)
  const lines = async (sql: string): Promise<string[]> =>
    (await session.rows<{ line: string }>(`SELECT to_json(r) AS line FROM (${sql}) r ORDER BY 1`)).map(
      ({ line }) => line,
    )
  const [version] = await session.rows('SELECT version FROM lake_info')
  const points = await lines(`SELECT ${columns} FROM points`)
  const products = await lines('FROM history.products')
  return { version: Number(version?.['version']), points, products }
}

/** A copy of the sound lake where it was made. */
function fresh(): string {
  const root = join(home, 'lake')
  rmSync(root, { recursive: true, force: true })
  cpSync(lakes.sound, root, { recursive: true })
  return root
}

/** What a person does who does what doctor says, word by word: what it says first, and what each command says then. */
async function follow(root: string) {
  const steps: string[] = []
  let said = ''
  let last = await run(root, 'doctor')
  for (;;) {
    said += `${last.out}${last.message}\n`
    const healthy = last.code === 0 && last.out.includes('checked ')
    const advice = last.code === 0 ? 'doctor' : /pitlake ([a-z]+(?: --[a-z-]+)*)/.exec(last.message)?.[1]
    if (healthy || advice === undefined || steps.length > 4) return { steps, said, last }
    if (advice !== 'doctor') steps.push(advice)
    last = await run(root, ...advice.split(' '))
    // Whatever mends leaves views of the version that the ledger has.
    if (advice.startsWith('doctor --')) expect(last.message, said).not.toMatch(/^lake\.(?:duckdb|sql)/)
  }
}

const names = Object.keys(harms)
const pairs: [string, string][] = names.flatMap((one, n) =>
  names.slice(n + 1).map((two): [string, string] => [one, two]),
)
const alone = [...names, ...Object.keys(others)].map((name): [string, string] => [name, 'nothing else'])
/** Pairs from which each remedy led to another one, and none out. */
const circles: [string, string][] = [
  ['middle entry torn', 'ledger lost'],
  ['last entry emptied', 'ledger lost'],
]

/** What only the bodies of its poll can tell, and the entries before it: where these are lost, too, a copy is named. */
const beyondHelp = (harm: string, { message }: Ended): boolean =>
  harm.includes('registry history lost') &&
  !harm.includes('nothing else') &&
  message.includes('from a copy of the lake: registry/raw cannot make it')

test.each([...circles, ...sample(alone, 2), ...sample(pairs, 5, Math.ceil(pairs.length / 42))])(
  'L3: %s, %s: doctor leads out',
  async (one, two) => {
    const root = fresh()
    const all: typeof harms = { ...harms, ...others }
    for (const name of [one, two]) all[name]?.(root, lakes)
    const { steps, said, last } = await follow(root)
    const about = `${steps.join(' | ')}\n${said}`
    // Where it went with the whole journal nothing of a newer program is left.
    if (`${one} ${two}`.includes('newer program') && two !== 'journal lost')
      return expect(last, about).toMatchObject({ code: 2, message: expect.stringContaining('update the program') })
    if (beyondHelp(`${one}, ${two}`, last)) return expect(last, about).toMatchObject({ code: 4 })
    expect([last.code, steps.length <= 4, new Set(steps).size], about).toEqual([0, true, steps.length])
    const { version, points, products } = await asked(root)
    expect(last.out).toContain(`version ${version},`)
    expect(
      points.filter((line) => !truth.points.includes(line)),
      about,
    ).toEqual([])
    if (points.length < truth.points.length) expect(said).toMatch(/\blost\b/)
    if (String(products) !== String(truth.products)) expect(said).toMatch(/lost|registry was moved/)
  },
)
