import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import { noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { finishRun } from '../../src/maintenance/upkeep/finish.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { bringViewsForward, makeVersionCurrent } from '../../src/query/views/current.ts'
import { commitDeps, coverageRow, seriesRow } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import type { LakeCommit } from '../helpers/lakes/lake-recipe.ts'
import { writing } from '../helpers/ledgers.ts'

const stepAt = (n: number): LakeCommit => ({
  at: `2024-04-0${n}`,
  points: [
    { metric: 'm/x', asset: 'BTC', interval: '24h', t: `2024-03-0${n}`, available_at: `2024-03-0${n + 1}`, v: n },
  ],
})

const countOf = async (engine: Engine): Promise<unknown> =>
  (await engine.rows('SELECT count(*) AS n FROM points'))[0]?.['n']

test('an open session keeps what it opened; the next one sees the new version', async ({ root }) => {
  await makeLake(root, [stepAt(1)])
  await makeViews(root)
  await withViews(root, async (open) => {
    await makeLake(root, [stepAt(2)])
    expect(await makeViews(root)).toMatchObject({ made: true, version: 2 })
    expect(await countOf(open)).toBe(1n)
    expect(await open.rows('SELECT version FROM lake_info')).toEqual([{ version: 1n }])
    expect((await open.rows('FROM versions')).length).toBe(1)
    expect(await withViews(root, countOf)).toBe(2n)
  })
})

test('a build without news writes no file, and rebuilds lost or damaged ones', async ({ root }) => {
  await makeLake(root, [stepAt(1)])
  expect(await makeViews(root)).toMatchObject({ made: true, version: 1, files: 1 })
  const script = readFileSync(join(root, 'lake.sql'), 'utf8')
  expect(await makeViews(root)).toMatchObject({ made: false, exports: 0 })
  rmSync(join(root, 'lake.duckdb'))
  expect(await makeViews(root)).toMatchObject({ made: true, exports: 0 })
  writeFileSync(join(root, 'lake.duckdb'), 'torn')
  expect(await makeViews(root, { force: true })).toMatchObject({ made: true })
  expect(await withViews(root, countOf)).toBe(1n)
  expect(readFileSync(join(root, 'lake.sql'), 'utf8')).toBe(script)
})

test('the database remembers which steps of a join are materialized and which are read again', async ({ root }) => {
  await makeLake(root, [stepAt(1)])
  await makeViews(root)
  const said = `SELECT macro_definition AS text FROM duckdb_functions() WHERE function_name = 'pit_join'`
  const [row] = await withViews(root, async (engine) => await engine.rows(said))
  expect(row?.['text']).toContain('_pit_all_points AS NOT MATERIALIZED')
  expect(row?.['text']).toContain('_pit_hits AS MATERIALIZED')
})

test('a build that fails at any step leaves the old views, and nothing of itself', async ({ root }) => {
  await makeLake(root, [stepAt(1)])
  await makeViews(root)
  await makeLake(root, [stepAt(2)])
  const files = (): string[] =>
    [...readdirSync(root), ...readdirSync(join(root, 'exports'))].filter((name) => name.startsWith('.'))
  const fail = async (): Promise<never> => {
    throw Object.assign(new Error('full'), { code: 'ENOSPC' })
  }
  for (const broken of [{ sync: fail }, { move: fail }, { write: fail }]) {
    const ledger = await Ledger.open(root)
    const deps = commitDeps({ disk: { ...realDisk, ...broken } })
    await expect(buildViews(ledger, { catalogue, deps })).rejects.toThrow(/no space left/)
    ledger.close()
    expect(files()).toEqual([])
    expect(await withViews(root, countOf)).toBe(1n)
  }
  writeFileSync(join(root, '.tmp-views-1-dead.duckdb'), 'left by a kill')
  await makeViews(root)
  expect(files()).toEqual([])
  expect(await withViews(root, countOf)).toBe(2n)
}, 300_000)

test('builders at the same time take turns', async ({ root }) => {
  await makeLake(root, [stepAt(1)])
  const built = await Promise.all([makeViews(root), makeViews(root), makeViews(root)])
  expect(built.filter(({ made }) => made)).toHaveLength(1)
  expect(await withViews(root, countOf)).toBe(1n)
}, 300_000)

test('a moved lake says what to do, and works after a build', async ({ root: folder }) => {
  const old = join(folder, 'old')
  const moved = join(folder, 'moved')
  await makeLake(old, [stepAt(1)])
  await makeViews(old)
  renameSync(old, moved)
  await withViews(moved, async (engine) => {
    const [info] = await engine.rows('SELECT folder, state FROM lake_info')
    expect(info).toEqual({ folder: old, state: 'this lake was moved: run pitlake views' })
    await expect(countOf(engine)).rejects.toThrow(/No files found/)
  })
  expect(readFileSync(join(moved, 'lake.sql'), 'utf8')).toMatch(/the lake was moved or copied.*\n.*Run `pitlake views`/)
  await makeViews(moved)
  expect(await withViews(moved, countOf)).toBe(1n)
  expect(existsSync(old)).toBe(false)
}, 300_000)

test('an empty lake has every object, without rows', async ({ root }) => {
  await writing(root, async (ledger) => await buildViews(ledger, { catalogue, deps: commitDeps() }))
  await withViews(root, async (engine) => {
    expect(await countOf(engine)).toBe(0n)
    for (const name of ['components', 'series', 'price_usd', 'links', 'universe', 'history.products', 'coverage'])
      expect(await engine.rows(`FROM ${name}`)).toEqual([])
    expect(await engine.rows('SELECT count(*) AS n FROM endpoints')).toEqual([{ n: BigInt(catalogue.endpoints.size) }])
  })
}, 300_000)

test('exports are shared between versions while their rows are the same', async ({ root }) => {
  const series = seriesRow(1)
  await makeLake(root, [{ ...stepAt(1), series: [series], coverage: [coverageRow(1, 0, 86_400)] }])
  await makeViews(root)
  const before = readdirSync(join(root, 'exports')).filter((name) => name.startsWith('coverage'))
  await makeLake(root, [stepAt(2)])
  expect(await makeViews(root)).toMatchObject({ exports: 1 })
  const names = readdirSync(join(root, 'exports'))
  expect(names.filter((name) => name.startsWith('coverage'))).toEqual(before)
  expect(names.filter((name) => name.startsWith('versions'))).toHaveLength(2)
}, 300_000)

/** All that a database says of its own objects, comments too. DuckDB writes the names behind EXCLUDE in any order. */
async function objectsOf(engine: Engine): Promise<readonly string[]> {
  const said = [
    `SELECT schema_name, view_name, comment, sql AS text FROM duckdb_views()`,
    `SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns()`,
    `SELECT schema_name, function_name, parameters, comment, macro_definition AS text FROM duckdb_functions()`,
  ]
  const rows: Row[] = []
  for (const sql of said) rows.push(...(await engine.rows(`${sql} WHERE NOT internal ORDER BY ALL`)))
  const sorted = (_: string, names: string): string => `EXCLUDE (${names.split(', ').toSorted().join(', ')})`
  return rows.map((row) => JSON.stringify(row).replaceAll(/EXCLUDE \(([^)]*)\)/g, sorted))
}

/** The objects of a database that the script alone has made, read from its file as the other is. */
async function fromScript(root: string): ReturnType<typeof objectsOf> {
  const path = join(root, 'spool', 'anew.duckdb')
  rmSync(path, { force: true })
  {
    using engine = await Engine.open()
    // In the form of the lake's own: another spells names of types otherwise.
    await engine.run(`ATTACH ${quote(path)} AS anew (STORAGE_VERSION 'v1.5.0'); USE anew`)
    await engine.run(readFileSync(join(root, 'lake.sql'), 'utf8'))
    await engine.run('USE memory; DETACH anew')
  }
  using engine = await Engine.open(path, { readOnly: true })
  return await objectsOf(engine)
}

test('whatever changed since the views before, the database holds just what the script says', async ({ root }) => {
  const products = (id: string): NonNullable<LakeCommit['tables']> => ({
    'history.products': [{ id, op: 'created', record: '{}' }],
    snapshots: [{ resource: 'products' }],
  })
  const { resources } = catalogue
  const renamed = [...resources.values()].map((one) => (one.name === 'venues' ? { ...one, name: 'places' } : one))
  const other = { ...catalogue, resources: new Map(renamed.map((one) => [one.name, one])) }
  const spied = vi.spyOn(Engine.prototype, 'run')
  /** How many objects a build made. */
  const built = async (options: Parameters<typeof makeViews>[1] = {}): Promise<number> => {
    spied.mockClear()
    expect(await makeViews(root, options)).toMatchObject({ made: true })
    const made = spied.mock.calls.filter(([sql]) => sql.startsWith('CREATE'))
    const objects = await withViews(root, objectsOf)
    const anew = await fromScript(root)
    expect(objects.length).toBe(anew.length)
    // The texts are long: the first difference is enough.
    const first = anew.findIndex((object, i) => objects[i] !== object)
    expect(objects[first]).toBe(anew[first])
    expect(existsSync(join(root, 'lake.duckdb.wal'))).toBe(false)
    expect(statSync(join(root, 'lake.duckdb')).size).toBeLessThan(
      1.2 * statSync(join(root, 'spool', 'anew.duckdb')).size,
    )
    return made.length
  }
  await makeLake(root, [stepAt(1)])
  const all = await built()
  await makeLake(root, [stepAt(2)])
  expect(await built()).toBeLessThan(all / 2)
  await makeLake(root, [{ ...stepAt(3), tables: products('p1') }])
  expect(await built()).toBeLessThan(all)
  await makeLake(root, [{ at: '2024-04-04', tables: products('p2') }])
  expect(await built()).toBeLessThan(all)
  // Objects of other names: the whole is made anew.
  expect(await built({ catalogue: other })).toBe(all)
  await makeLake(root, [stepAt(5)])
  expect(await built({ catalogue: other })).toBeLessThan(all / 2)
  expect(await built({ force: true })).toBe(all)
  // A database that is not the one of the manifest is not built upon.
  await makeLake(root, [stepAt(6)])
  appendFileSync(join(root, 'lake.duckdb'), 'x')
  expect(await built()).toBe(all)
  spied.mockRestore()
}, 300_000)

test('a run without work leaves whole views alone and rebuilds damaged ones', async ({ root }) => {
  await makeLake(root, [stepAt(1)])
  await makeViews(root)
  const deps = { ...commitDeps(), signal: new AbortController().signal }
  const note = (text: string): void => expect(text).toBe('')
  for (const lost of [null, 'lake.sql', 'lake.duckdb', 'lake.manifest.json']) {
    const before = statSync(join(root, 'lake.duckdb')).ino
    if (lost) rmSync(join(root, lost))
    using ledger = await Ledger.open(root)
    await finishRun({ ledger, run: 'r', commits: 0, requests: 0 }, { catalogue, deps, note })
    expect(existsSync(join(root, lost ?? 'lake.sql'))).toBe(true)
    expect(await withViews(root, countOf)).toBe(1n)
    if (!lost) expect(statSync(join(root, 'lake.duckdb')).ino).toBe(before)
  }
}, 300_000)

test('a job that adds only rows of runs leaves its views alone, and the end of its command rebuilds them', async ({
  root,
}) => {
  await makeLake(root, [stepAt(1)])
  const deps = { ...commitDeps(), signal: new AbortController().signal }
  await bringViewsForward(root, { catalogue, deps })
  const runsSeen = async (): Promise<unknown> =>
    await withViews(
      root,
      async (engine) => (await engine.rows("SELECT count(*) AS n FROM runs WHERE id = 'r'"))[0]?.['n'],
    )
  {
    using ledger = await Ledger.open(root)
    await noteRunFacts(ledger, { id: 'r', job: 'fetch', command: 'pitlake fetch', started_at: 1_712_000_000_000_000 })
    const before = statSync(join(root, 'lake.duckdb')).ino
    const note = (text: string): void => expect(text).toBe('')
    await finishRun({ ledger, run: 'r', commits: 0, requests: 1 }, { catalogue, deps, note })
    expect(statSync(join(root, 'lake.duckdb')).ino).toBe(before)
    expect(await makeVersionCurrent(ledger, { catalogue, deps })).toMatchObject({ made: false, version: 1, files: 1 })
  }
  expect(await runsSeen()).toBe(0n)
  await bringViewsForward(root, { catalogue, deps })
  expect(await runsSeen()).toBe(1n)
})
