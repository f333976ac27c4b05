import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { publishTo } from '../helpers/delta.ts'
import { goldenStages, writeGolden } from '../helpers/golden-lake.ts'
import { makeLake } from '../helpers/views.ts'

const project = join(import.meta.dirname, '../..')
const python = join(project, '.cache/readers-venv/bin/python')
const there = existsSync(python)
if (!there)
  process.stderr.write('no Python with deltalake and chdb: readers are not asked (scripts/peers.sh readers)\n')

/** What an engine came to. */
interface Told {
  readonly engine: string
  readonly decisions: number
  readonly answered: number
  readonly universes: number
  readonly differences: readonly string[]
}

let home = ''
let out = ''
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'pitlake-readers-'))
  out = join(home, 'out')
  writeGolden(join(home, 'golden.json'), 6300)
  for (const steps of goldenStages) {
    await makeLake(join(home, 'lake'), steps)
    await publishTo(join(home, 'lake'), out)
  }
}, 300_000)
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** What the script says of these engines or questions, a line each. */
function asked<T>(...words: readonly string[]): T[] {
  const said = execFileSync(python, ['test/python/readers.py', out, join(home, 'golden.json'), ...words], {
    cwd: project,
    encoding: 'utf8',
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return said
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T)
}

test('every text is there, names the tables where they lie, and has no placeholder left', () => {
  for (const name of [
    'duckdb.sql',
    'clickhouse.sql',
    'spark.sql',
    'trino.sql',
    'pitlake_pyspark.py',
    'pitlake_polars.py',
  ]) {
    const text = readFileSync(join(out, 'readers', name), 'utf8')
    expect(text).toContain(out)
    expect(text).not.toMatch(/\{\{|\}\}|undefined/)
  }
})

test.runIf(there).each(['polars', 'duckdb', 'clickhouse'])(
  'L1: %s answers a hundred thousand decisions by the published text as brute force does',
  (engine) => {
    const [told] = asked<Told>(engine)
    expect(told).toMatchObject({ engine, decisions: 100_800, universes: 57, differences: [] })
    expect(told?.answered).toBeGreaterThan(70_000)
  },
  300_000,
)

test.runIf(there)(
  'L6: a reader answers at each of three published versions what the lake held then',
  () => {
    const told = asked<Told>('versions')
    expect(told.map(({ differences }) => differences)).toEqual([[], [], []])
    const [first = 0, second = 0, third = 0] = told.map(({ answered }) => answered)
    expect(first).toBeGreaterThan(50_000)
    expect(second).toBeGreaterThan(first)
    expect(third).toBeGreaterThan(second)
  },
  300_000,
)

test.runIf(there)(
  'a text that forgets one rule is noticed, and so are instants rounded down or to the nearest',
  () => {
    const told = asked<{ planted: string; noticed: number }>('planted')
    expect(told).toHaveLength(8)
    for (const { planted, noticed } of told) expect([planted, noticed > 0]).toEqual([planted, true])
  },
  600_000,
)
