import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { openLake } from '../../src/index.ts'
import { admit } from '../../src/query/gate.ts'
import { readingFunctions, refusedFunctions } from '../../src/query/gate-lists.ts'
import { openQuery } from '../../src/query/lake.ts'
import { runCancellable, runScript } from '../../src/query/run.ts'
import { golden } from '../helpers/golden-rows.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const { root: folder } = lakeOfFile(hundredFetchedDays)
let engine: Engine
/** What the lake's folder and its folder of points hold before anything is tried. */
let stands: string[] = []
let points: string[] = []
const below = async (...names: readonly string[]): Promise<string[]> =>
  // What SQLite puts beside its database while that is read says nothing of the lake.
  (await readdir(join(folder, ...names), { recursive: true }))
    .filter((name) => !/^ledger\.sqlite-(?:shm|wal)$/.test(name))
    .toSorted()
beforeAll(async () => {
  ;[stands, points] = [await below(), await below('points')]
  engine = await openQuery(folder)
})
/** A file of points, below their folder. */
const ofPoints = (): string => points.find((name) => name.endsWith('.parquet')) ?? ''
afterAll(async () => {
  engine.close()
})

const run = async (sql: string, on = engine) => {
  const deps = { folder, sleep: setTimeout }
  const { text } = await runScript(on, sql, deps)
  return runCancellable(on, text, deps, async () => on.rows(text))
}

const refusal = async (sql: string, on = engine): Promise<LakeError> => {
  const error: unknown = await run(sql, on).catch((caught: unknown) => caught)
  expect(error, sql).toBeInstanceOf(LakeError)
  return error as LakeError
}

const LOG = `enable_logging(storage = 'file', storage_config = {'path': '@@'})`
const here = (sql: string): string => sql.replaceAll('@@', join(folder, 'points', 'written'))

const cases = golden('gate/gate') as {
  readonly refused: readonly (readonly [what: string, sql: string, words: string])[]
  readonly passes: readonly string[]
}

describe('what the gate refuses', () => {
  test.each(cases.refused)('%s', async (_, sql, words) => {
    expect((await refusal(here(sql))).message).toMatch(new RegExp(words))
    expect(await below('points')).toEqual(points)
    expect(await engine.rows("SELECT CAST(current_setting('enable_logging') AS INTEGER) AS on")).toEqual([{ on: 0 }])
  })

  // Past the cutting of a script, which would have parted them: the gate counts for itself.
  test.each([
    ['two', 'SELECT 1; SELECT 2'],
    ['two, the second behind a carriage return', 'SELECT 1 --\r; SELECT 2 --'],
    ['three, of which one writes', `SELECT 1 --\r; COPY (SELECT 1) TO '@@.csv'; SELECT 2 --`],
  ])('%s statements that come as one', async (_, sql) => {
    const error: unknown = await admit(engine, here(sql)).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(LakeError)
    expect((error as LakeError).message).toMatch(
      sql.includes('COPY') ? /a query that only reads/ : /several statements/,
    )
    await expect(engine.prepared(here(sql))).rejects.toThrow(/one statement was to be read, not [23]/)
    expect(await below('points')).toEqual(points)
  })

  test('every table function of the engine is judged', async () => {
    const rows = await engine.rows<{ name: string }>(
      `SELECT DISTINCT function_name AS name FROM system.main.duckdb_functions() WHERE internal AND function_type IN ('table', 'table_macro')`,
    )
    const names = rows.map(({ name }) => name)
    expect(names.filter((name) => !readingFunctions.has(name) && !refusedFunctions.has(name))).toEqual([])
    expect([...readingFunctions, ...refusedFunctions].filter((name) => !names.includes(name))).toEqual([])
    expect([...readingFunctions].filter((name) => refusedFunctions.has(name))).toEqual([])
  })
})

describe('what the gate lets pass', () => {
  test.each(cases.passes)('%s', async (sql) => await expect(run(sql)).resolves.toBeInstanceOf(Array))

  test('a statement with parameters passes the gate, and its values reach the plan', async () => {
    const lake = await openLake(folder)
    const table = await lake.sql('SELECT count(*) AS n FROM points WHERE asset = $asset AND v < $v', {
      asset: 'BTC',
      v: 1010,
    })
    expect(table.get(0)?.n).toBe(10n)
    await expect(lake.sql(`SELECT 1 --\r; COPY (SELECT 1) TO 'x.csv'; SELECT 2 --`)).rejects.toThrow(/got COPY/)
    await lake.close()
  })
})

/** A copy of the lake whose database somebody else made. */
async function forged(name: string, statements: readonly string[]): Promise<string> {
  const root = join(folder, '..', name)
  await mkdir(root)
  await cp(join(folder, 'points'), join(root, 'points'), { recursive: true })
  const own = await Engine.open(join(root, 'lake.duckdb'))
  try {
    for (const sql of statements) await own.run(sql)
  } finally {
    own.close()
  }
  return root
}

describe('a lake that somebody else made', () => {
  const log = (root: string): string => LOG.replace('@@', join(root, 'points', 'written'))

  test('views of a foreign lake run behind the lock, and only those that read', async () => {
    const outside = join(folder, '..', 'outside')
    const trap = `FROM ${LOG.replace('@@', outside)}`
    const root = await forged('trap', [
      `CREATE VIEW lake_info AS SELECT '/' AS folder FROM (${trap} UNION ALL FROM range(1))`,
      `CREATE VIEW points AS FROM query(${quote(trap)})`,
    ])
    await expect(openQuery(root)).rejects.toThrow(/got enable_logging/)
    expect(await readdir(join(folder, '..'))).not.toContain('outside')
  })

  test('a view of a foreign lake makes no folder readable', async () => {
    const root = await forged('liar', [`CREATE VIEW lake_info AS SELECT '/etc' AS folder`])
    await expect(openQuery(root)).rejects.toThrow(/views made for \/etc/)
  })

  test('views and macros that write are refused when they are queried', async () => {
    const root = join(folder, '..', 'writers')
    await forged('writers', [
      `CREATE VIEW points AS FROM ${log(root)}`,
      `CREATE MACRO calendar(a) AS TABLE FROM query(${quote(`FROM ${log(root)}`)})`,
      `CREATE MACRO other(a) AS TABLE FROM query_table(a)`,
    ])
    const session = await openQuery(root)
    for (const sql of [
      'FROM points',
      'SELECT 1 FROM calendar(1)',
      `FROM other('points')`,
      'DESCRIBE points; FROM points',
    ])
      expect((await refusal(sql, session)).message, sql).toMatch(/got enable_logging/)
    expect(await run('SELECT 1 AS a', session)).toEqual([{ a: 1 }])
    session.close()
    expect((await readdir(join(root, 'points'), { recursive: true })).toSorted()).toEqual(points)
  })

  test.each(['json_serialize_sql', 'duckdb_views', 'duckdb_extensions', 'epoch_us'])(
    'a macro named %s in a foreign lake does not run',
    async (name) => {
      const outside = join(folder, '..', `outside-${name}`)
      const table = name.startsWith('duckdb') ? `AS TABLE FROM ${LOG.replace('@@', outside)}` : `AS 1`
      const root = await forged(`shadow-${name}`, [
        `CREATE MACRO ${name}(${table.includes('TABLE') ? '' : 'a'}) ${table}`,
      ])
      await expect(openQuery(root)).rejects.toThrow(new RegExp(`got one with a function ${name} of its own`))
      expect(await readdir(join(folder, '..'))).not.toContain(`outside-${name}`)
    },
  )

  test('a stored script makes views, nothing else', async () => {
    const target = join(folder, 'points', 'script.csv')
    for (const script of [
      `COPY (SELECT 1) TO ${quote(target)}`,
      `CREATE OR REPLACE TABLE x AS SELECT 1`,
      `CREATE VIEW a AS SELECT 1 --\r; COPY (SELECT 1) TO ${quote(target)}`,
    ])
      await expect(openQuery(folder, { script }), script).rejects.toThrow(/got (?:COPY|CREATE)/)
    using session = await openQuery(folder, {
      script: `SET threads = 1; CREATE VIEW a AS SELECT 5 AS n; COMMENT ON VIEW a IS 'x'`,
    })
    expect(await run('FROM a', session)).toEqual([{ n: 5 }])
  })
})

describe('no path that SQL can name is writable', () => {
  test('the spill folder is not writable from SQL, has an unknown name and is closed to other users', async () => {
    const session = await openQuery(folder, { memoryLimit: '60MB', threads: 1 })
    const [row] = await session.rows<{ path: string; seen: readonly string[] }>(
      `SELECT current_setting('temp_directory') AS path, current_setting('allowed_directories') AS seen`,
    )
    const { path = '', seen = [] } = row ?? {}
    const { stat } = await import('node:fs/promises')
    expect((await stat(join(path, '..'))).mode & 0o777).toBe(0o700)
    expect(seen.filter((one) => !one.startsWith(folder))).toEqual([`${path}/`])
    const [paths] = await session.rows<{ p: readonly string[] }>(`SELECT current_setting('allowed_paths') AS p`)
    expect(paths?.p.filter((one) => !one.startsWith(`${folder}/lake.duckdb`))).toEqual([])
    for (const name of ['temp_directory', 'allowed_directories', 'TEMP_DIRECTORY', 'secret_directory'])
      expect((await refusal(`SELECT current_setting('${name}')`, session)).message).toMatch(/current_setting of/)
    for (const sql of ['SHOW ALL TABLES', 'FROM duckdb_databases()', 'FROM duckdb_variables()', 'FROM duckdb_memory()'])
      expect(
        JSON.stringify(await run(sql, session), (_, v: unknown) => (typeof v === 'bigint' ? String(v) : v)),
      ).not.toContain(path)
    const above = join(path, '..', '..', '*')
    expect((await refusal(`FROM glob(${quote(above)})`, session)).message).toMatch(/files of the lake/)
    session.close()
    await expect(readdir(join(path, '..'))).rejects.toThrow(/ENOENT/)
  })

  test('a path below the spill folder is refused by name, and so are computed file names', async () => {
    using session = await openQuery(folder)
    const { spill = '' } = session
    const [row] = await session.rows<{ path: string }>(`SELECT current_setting('temp_directory') AS path`)
    const { path = '' } = row ?? {}
    expect(path.startsWith(`${spill}/`)).toBe(true)
    const file = join(path, 'rows.csv')
    await mkdir(path, { recursive: true })
    await writeFile(file, 'a\n1\n')
    await symlink(spill, join(folder, '..', 'way'))
    // The engine itself would read it.
    expect(await session.rows(`FROM ${quote(file)}`)).toEqual([{ a: 1n }])
    const other = [spill, relative(process.cwd(), spill), join(folder, '..', 'way')]
    const known = other.flatMap((home) => {
      const at = quote(file.replace(spill, home))
      return [
        `FROM read_text(${at})`,
        `FROM read_csv([${at}, ${quote(join(folder, 'points', ofPoints()))}])`,
        `FROM ${at}`,
        `FROM query_table(${at})`,
        `FROM glob(${quote(`${path.replace(spill, home)}/*`)})`,
        `SET VARIABLE f = ${at}; SELECT 1`,
        `EXPLAIN ANALYZE FROM read_text(${at})`,
        `CREATE TEMP TABLE stolen AS FROM read_blob(${at})`,
      ]
    })
    for (const sql of known)
      expect((await refusal(sql, session)).message, sql).toMatch(/got a path of the session itself/)
    const half = [file.slice(0, spill.length - 4), file.slice(spill.length - 4)].map(quote).join(' || ')
    for (const sql of [
      `FROM read_text(${half})`,
      `FROM read_text([${half}])`,
      `FROM query_table(${half})`,
      `SET VARIABLE f = ${half}; FROM read_text(getvariable('f'))`,
      `CREATE TEMP MACRO m(p) AS TABLE FROM read_text(p); FROM m(${half})`,
      `FROM glob(${half})`,
    ])
      expect((await refusal(sql, session)).message, sql).toMatch(/got a computed name of a file/)
    const prepared = admit(session, 'FROM read_text($f)', { f: file })
    await expect(prepared).rejects.toThrow(/got a computed name of a file/)
  })

  test('a join with a subquery as decisions is refused with the way to name it', async () => {
    const words =
      /pit_join: expected decisions as the name of a table, view or CTE, got a subquery .* WITH d AS \(SELECT …\)/
    const decisions = `(SELECT ts, 'BTC' AS asset FROM calendar('2024-01-01', '2024-02-01', '1 day'))`
    expect((await refusal(`FROM pit_join(${decisions}, 'm', '24h')`)).message).toMatch(words)
    expect((await refusal(`FROM pit_join('a' || 'b', 'm', '24h')`)).message).toMatch(words)
  })

  test('a link in the lake that leads out of it is not followed', async () => {
    const outside = join(folder, '..', 'secret.txt')
    const link = join(folder, 'points', 'link.txt')
    await writeFile(outside, 'secret')
    await symlink(outside, link)
    expect((await refusal(`FROM read_text(${quote(link)})`)).message).toMatch(/files of the lake/)
    await rm(link)
  })

  test('the engine alone would write into the folder of the lake, the gate does not let it', async () => {
    using session = await openQuery(folder)
    const target = join(folder, 'points', 'written.csv')
    const sql = `COPY (SELECT 1 AS a) TO ${quote(target)}`
    expect((await refusal(sql, session)).message).toMatch(/got COPY/)
    expect(await below('points')).toEqual(points)
    await session.run(sql)
    expect(await below('points')).toEqual([...points, 'written.csv'].toSorted())
    await rm(target)
  })

  test('none of these statements wrote into the lake', async () => {
    expect(await below()).toEqual(stands)
    const bytes = await readFile(join(folder, 'points', ofPoints()))
    await writeFile(join(folder, '..', 'kept'), bytes)
    expect(bytes.subarray(0, 4).toString()).toBe('PAR1')
  })
})
