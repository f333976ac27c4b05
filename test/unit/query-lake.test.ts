import { cp, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { openQuery, type SessionOptions } from '../../src/query/lake.ts'
import { noteTexts } from '../../src/query/note-texts.ts'
import { notesOfSql } from '../../src/query/question.ts'
import { runCancellable, runScript } from '../../src/query/run.ts'
import { golden } from '../helpers/golden-rows.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { makeViews } from '../helpers/views.ts'

const { root: folder } = lakeOfFile(hundredFetchedDays)

async function session<T>(options: SessionOptions, work: (engine: Engine) => Promise<T>): Promise<T> {
  using engine = await openQuery(folder, options)
  return await work(engine)
}

/** A session for all tests of a group. */
function sessionOfGroup(options: SessionOptions = {}): () => Engine {
  let engine: Engine
  beforeAll(async () => void (engine = await openQuery(folder, options)))
  afterAll(() => engine.close())
  return () => engine
}

const run = async (engine: Engine, sql: string, signal?: AbortSignal) => {
  const deps = { folder, sleep: setTimeout, signal }
  const { text } = await runScript(engine, sql, deps)
  return runCancellable(engine, text, deps, async () => engine.rows(text))
}

const count = async (options: SessionOptions): Promise<unknown> =>
  session(options, async (engine) => (await run(engine, 'SELECT count(*) AS n FROM points'))[0]?.['n'])

describe('the state of knowledge', () => {
  test.each([
    ['2024-01-02', 0n],
    ['2024-01-02T00:10:00Z', 4n],
    ['2024-01-02 00:09:59.999999', 0n],
    ['2024-01-02T01:10:00+01:00', 4n],
    [new Date('2024-01-03T00:10:00Z'), 8n],
    ['2099-01-01', 400n],
  ])('as_of of %s decides which points are seen', async (asOf, points) => expect(await count({ asOf })).toBe(points))

  test('session variables may have any type', async () => {
    const set = { text: `it's`, number: 1.5, yes: true, none: null, as_of: '2024-01-03' }
    await session({ backfill: 'rule', registryBackfill: true, set }, async (engine) => {
      const [row] = await run(
        engine,
        `SELECT getvariable('text') AS a, getvariable('number') AS b, getvariable('yes') AS c, getvariable('none') AS d,
 getvariable('as_of') AS e, getvariable('backfill') AS f, getvariable('registry_backfill') AS g, current_setting('TimeZone') AS z`,
      )
      expect(Object.values(row ?? {})).toEqual([`it's`, 1.5, true, null, '2024-01-03', 'rule', true, 'UTC'])
    })
  })

  test('sessions of one lake do not share variables, and have UTC', () =>
    session({ asOf: '2024-01-03' }, async (engine) => {
      const other = await engine.session()
      expect(await other.rows(`SELECT getvariable('as_of') AS a, current_setting('TimeZone') AS z`)).toEqual([
        { a: null, z: 'UTC' },
      ])
      other.close()
    }))

  test.each(['tomorrow', '2024-13-01', '', '2024-02-30'])('as_of %j is refused', async (asOf) => {
    await expect(count({ asOf })).rejects.toThrow(/--as-of: expected an instant such as 2024-06-01/)
  })
})

describe('a lake that is not there', () => {
  test('a folder without a lake and a lake without views end in the next command', async () => {
    const empty = join(folder, '..', 'empty')
    await mkdir(join(empty, 'journal'), { recursive: true })
    await expect(openQuery(empty)).rejects.toThrow(/expected lake.duckdb, got a lake without it; run `pitlake views`/)
    await expect(openQuery(join(empty, 'no'))).rejects.toThrow(/got a folder without a lake; run `pitlake fetch`/)
  })

  test('a damaged database ends in the next command', async () => {
    const damaged = join(folder, '..', 'damaged')
    await mkdir(damaged)
    await writeFile(join(damaged, 'lake.duckdb'), 'x'.repeat(20_000))
    await expect(openQuery(damaged)).rejects.toThrow(
      /expected a lake.duckdb that DuckDB can open, .*run `pitlake views`/,
    )
  })

  test('copied, moved, reached by a link', async () => {
    const copy = join(folder, '..', 'copy')
    await cp(folder, copy, { recursive: true })
    await expect(openQuery(copy)).rejects.toThrow(
      /views made for .*lake; the lake was moved or copied: run `pitlake views`/,
    )
    const link = join(folder, '..', 'link')
    await symlink(folder, link)
    const engine = await openQuery(link)
    expect(await run(engine, 'SELECT count(*) AS n FROM points')).toEqual([{ n: 400n }])
    engine.close()
    await rm(link)
    // Made by one name, opened by another.
    await symlink(copy, link)
    await makeViews(link)
    const other = await openQuery(copy)
    expect(await run(other, 'SELECT count(*) AS n FROM points')).toEqual([{ n: 400n }])
    other.close()
    await rm(link)
  })

  test('files that are gone since', async () => {
    const points = join(folder, 'points')
    using engine = await openQuery(folder)
    await rename(points, `${points}-gone`)
    await expect(run(engine, 'SELECT count(*) FROM points')).rejects.toThrow(
      /views that read .*parquet; .*run `pitlake views`/,
    )
    await rename(`${points}-gone`, points)
    expect(await run(engine, 'SELECT count(*) AS n FROM points')).toEqual([{ n: 400n }])
  })
})

describe('a session only reads', () => {
  const here = (): string => join(folder, 'written')
  const { attempts } = golden('gate/session') as { readonly attempts: readonly (readonly [string, string])[] }
  const engine = sessionOfGroup()
  test.each(attempts)('%s', async (sql, words) => {
    const before = await readdir(folder)
    const error: unknown = await run(engine(), sql.replaceAll('HERE', here())).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(LakeError)
    expect((error as LakeError).message).toMatch(new RegExp(words))
    expect((error as LakeError).message).not.toContain('\n')
    expect((error as LakeError).kind).toBe('usage')
    expect(await readdir(folder)).toEqual(before)
  })

  test('temporary things, scripts and explanations are allowed', () =>
    session({}, async (engine) => {
      const script = `CREATE TEMP TABLE mine AS SELECT 1 AS a; INSERT INTO mine VALUES (2);
CREATE TEMP MACRO plus(x) AS x + 1; SET VARIABLE k = 5; SELECT sum(plus(a)) + getvariable('k') AS s FROM mine; -- end`
      expect(await run(engine, script)).toEqual([{ s: 10n }])
      expect(await run(engine, 'EXPLAIN ANALYZE SELECT 1')).toHaveLength(1)
      expect(await run(engine, 'FROM (DESCRIBE points) SELECT column_name LIMIT 1')).toEqual([
        { column_name: 'metric' },
      ])
    }))

  test('a query that exceeds memory spills into a temporary folder', async () => {
    await session({ memoryLimit: '60MB', threads: 1 }, async (engine) => {
      const sql = 'SELECT count(*) AS n FROM (SELECT row_number() OVER (ORDER BY hash(i)) FROM range(2000000) AS r(i))'
      expect(await run(engine, sql)).toEqual([{ n: 2_000_000n }])
    })
    expect((await readdir(folder)).filter((name) => name.includes('tmp'))).toEqual([])
  })
})

describe('a mistake is one line with its place', () => {
  const spaces = ' '.repeat(200)
  const engine = sessionOfGroup()
  test.each([
    ['selec 1', /^SQL \(line 1 column 1\): syntax error at or near "selec"$/],
    ['SELECT 1;\n\n  SELECT nope', /^SQL \(line 3 column 10\): Referenced column "nope" (?:was )?not found/],
    [
      'SELECT 1; SELECT * FROM pionts',
      /^SQL \(line 1 column 25\): Table with name pionts does not exist! Did you mean "points"/,
    ],
    [`SELECT 1 AS a,${spaces}b + nope FROM (SELECT 1 AS b)`, /^SQL \(line 1 column 219\): Referenced column "nope"/],
    [`SELECT 'a`, /^SQL \(line 1 column 8\): unterminated quoted string/],
    ['-- nothing', /^SQL: expected a statement, got nothing$/],
    [`SELECT error('mine')`, /^SQL: mine$/],
    [`SELECT CAST('abc' AS INTEGER)`, /^SQL \(line 1 column 8\): Could not convert string 'abc' to INT32$/],
    ['SELECT $1', /^SQL: Values were not provided|^SQL: .*parameter/],
  ])('%j', async (sql, words) => {
    const error: unknown = await run(engine(), sql).catch((caught: unknown) => caught)
    expect((error as LakeError).message).toMatch(words)
    expect((error as LakeError).kind).toBe('usage')
  })
})

describe('notes on the registry', () => {
  const notesOn = async (engine: Engine, sql: string) => notesOfSql(engine, sql, { folder, sleep: setTimeout })
  const [before, after, now] = [
    sessionOfGroup({ asOf: '2024-01-15' }),
    sessionOfGroup({ asOf: '2024-02-15' }),
    sessionOfGroup(),
  ]
  test.each([
    ['SELECT * FROM universe', true],
    ['SELECT * FROM history.products', true],
    ['WITH a AS (SELECT * FROM points) SELECT * FROM a, lake.main.universe', true],
    ['SELECT p.id FROM products AS p', true],
    ['SELECT asset AS products FROM points', false],
    ['SELECT * FROM points', false],
    [`SELECT 'universe'`, false],
    ['SET VARIABLE a = 1', false],
  ])('%s', async (sql, noted) => {
    const note = /the registry is not known at this as_of: it is known since 2024-02-01T00:00:00Z/
    expect(noteTexts(await notesOn(before(), sql), 'terminal')).toEqual(noted ? [expect.stringMatching(note)] : [])
    expect(await run(before(), `SELECT getvariable('as_of') AS a`)).toEqual([{ a: '2024-01-15' }])
    for (const other of [after, now]) expect(await notesOn(other(), sql)).toEqual([])
  })
})
