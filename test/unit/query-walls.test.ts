import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { admit, refusalOf } from '../../src/query/gate.ts'
import { judgeScans } from '../../src/query/gate-plan.ts'
import { openQuery } from '../../src/query/lake.ts'
import { judgeQuestion } from '../../src/query/question.ts'
import { runCancellable, runScript } from '../../src/query/run.ts'
import { fileRead, parsedSql } from '../../src/query/parse-tree.ts'
import type { Engine, Prepared } from '../../src/lake/store/engine.ts'
import { relationText } from '../../src/query/views/read-points.ts'
import { golden } from '../helpers/golden-rows.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

/* A door's session stands at the beginning of 2024-01-05; the lake holds a hundred days. Each attack gets at what came later, or at the texts. */

const mark = 'mark_0f1e2d3c4b5a69788796a5b4c3d2e1f0'
const asOf = '2024-01-05'
const { root: folder } = lakeOfFile(hundredFetchedDays)
let [door, plain]: Engine[] = []
let file = ''
let columns = ''
beforeAll(async () => {
  door = await openQuery(folder, { mark, asOf })
  plain = await openQuery(folder, { asOf })
  const names = await readdir(join(folder, 'points'), { recursive: true })
  file = join(folder, 'points', names.find((name) => name.endsWith('.parquet')) ?? '')
  const told = await plain.rows<{ column_name: string; column_type: string }>(`DESCRIBE FROM '${file}'`)
  // A relation that the file can be put below: its instants of arrival stand where a decision has its own.
  columns = told
    .map(({ column_name: name, column_type: type }) => {
      const given: Readonly<Record<string, string>> = { available_at: 'ts', asset: 'asset', v: 'secret' }
      return `CAST(NULL AS ${type}) AS ${given[name] ?? `x_${name}`}`
    })
    .join(', ')
})
afterAll(async () => {
  door?.close()
  plain?.close()
})

/** What the engine itself answers, unless the walls are there. */
const { attacks } = golden('gate/walls') as { readonly attacks: readonly (readonly [what: string, sql: string])[] }
const filled = (sql: string): string =>
  sql
    .replaceAll('@columns', columns)
    .replaceAll('@stem', file.replace(/\.parquet$/, ''))
    .replaceAll('@@', file)
    .replaceAll('@lake', folder)

const session = (): Engine => door as Engine
const ask = async (sql: string): Promise<unknown> => {
  const run = { folder, sleep: setTimeout, mark }
  const { text } = await runScript(session(), sql, run)
  return runCancellable(session(), text, run, async () => session().rows(text))
}

describe('what gets past as_of', () => {
  test.each(attacks)('%s', async (_, attack) => {
    const text = filled(attack)
    // The engine would do it, in a session without views of its own making, too.
    expect(await (plain as Engine).rows(text)).toBeInstanceOf(Array)
    expect(await session().rows(text)).toBeInstanceOf(Array)
    // Both walls, and the second one alone.
    for (const refusing of [ask, async (sql: string) => judgeScans(session(), sql, mark, refusalOf)]) {
      const error: unknown = await refusing(text).catch((caught: unknown) => caught)
      expect(error).toBeInstanceOf(LakeError)
      expect((error as LakeError).message).toMatch(/^SQL: expected a query that only reads, got /)
      expect((error as LakeError).message).not.toMatch(new RegExp(`${mark}|${folder}`))
    }
  })

  test('a judged plan has the same columns as the engine', async () => {
    for (const sql of [
      `SELECT 1::DECIMAL(18,3) AS a, 2 AS b, 'x'::JSON AS j, [[1]] AS l, {'q': 1, 'w "e': [now()]} AS s, now() AS t, 1::HUGEINT AS h`,
      `SELECT *, NULL AS n, MAP {1: 'x'} AS m, 'x'::ENUM('x', 'y''z') AS e, array_value(1, 2) AS p FROM points ORDER BY t LIMIT 1`,
      `SELECT now() AT TIME ZONE 'UTC' AS a, TIME '10:00' AS b, INTERVAL 1 DAY AS c, uuid() AS d, '1'::BIT AS e, TIMESTAMP_NS '2020-01-01' AS f -- end`,
      'FROM universe',
      'DESCRIBE points',
      'VALUES (1, 2)',
    ]) {
      const told = (columns: readonly Prepared['columns'][number][]) =>
        columns.map(({ name, type }) => [name, String(type), type.alias])
      const { columns } = await admit(door as Engine, sql, undefined, mark)
      expect(told(columns), sql).toEqual(told((await (door as Engine).prepared(sql)).columns))
    }
  })

  test('a statement past the gate exchanges no view that another session reads', async () => {
    for (const sql of [
      'CREATE OR REPLACE VIEW points AS SELECT 1 AS v',
      'CREATE OR REPLACE MACRO pit_join(a, b, c) AS TABLE SELECT 1 AS v',
      'DROP VIEW series',
      'CREATE TABLE main.mine (a INTEGER)',
    ])
      await expect(session().run(sql), sql).rejects.toThrow(/read-only/)
  })

  test('a NUL sign in a statement is refused in our words', async () => {
    const asked = judgeQuestion({ sql: "SELECT 1 --\0'" }, session(), { folder, sleep: setTimeout, mark })
    await expect(asked).rejects.toThrow(/^SQL: expected one SELECT/)
  })

  test('the file list of a join is bound once, and the same way in each check', () => {
    const text = relationText('/lake', 'told_paths', (list) => `array_to_string(${list}, ' ')`, true)
    expect(text.match(/told_paths/g)).toHaveLength(1)
  })

  test('points that bear the mark stand under a cut that bears it, too', async () => {
    const scan = `SELECT available_at, v FROM read_parquet('${file}', filename = '${mark}')`
    const judged = async (sql: string): Promise<object> => judgeScans(plain as Engine, sql, mark, refusalOf)
    await expect(judged(scan)).rejects.toThrow(/got points that are not cut/)
    for (const uncut of [`UNION ALL ${scan} WHERE '${mark}' <> asset`, 'WHERE length(asset) + v > 0'])
      await expect(judged(`${scan} ${uncut}`)).rejects.toThrow(/got points that are not cut/)
    expect(await judged(`${scan} WHERE '${mark}' <> asset`)).toHaveProperty('type', 'LOGICAL_PROJECTION')
  })

  test('the first wall alone sees every file that a statement names, as look-ahead proofs ask it', async () => {
    for (const [what, sql] of attacks.slice(0, 25)) {
      const tree = await parsedSql(plain as Engine, filled(sql))
      expect(await fileRead(plain as Engine, tree), what).toBeTypeOf('string')
    }
  })
})

describe('where only the views may be read', () => {
  test.each([
    ['a file', `FROM '@@'`],
    ['one that is quoted as a name', `SELECT * FROM "@@" LIMIT 1`],
    ['one that is summarized', `SUMMARIZE '@@'`],
    ['one that is described', `SELECT * FROM (DESCRIBE '@@')`],
    ['one in a list of tables', `FROM query_table(['@@'])`],
    ['one among views in a list', `SELECT t FROM query_table(['points', '@@'])`],
    ['one that a join is given', `FROM pit_join('@@', 'supply/current_pit', '24h')`],
    ['one whose name is computed', `FROM pit_join('@@' || '', 'supply/current_pit', '24h')`],
    ['one whose name is a variable', `FROM pit_window(getvariable('x'), 'supply/current_pit', '24h', 3)`],
    [
      'one behind a CTE of its name',
      `SELECT * FROM '@@' WHERE 1 = (WITH "@@" AS (SELECT 1) SELECT count(*) FROM "@@")`,
    ],
    ['a function over files', `FROM read_parquet('@@')`],
    ['a function in a condition', `FROM points WHERE EXISTS (FROM read_blob('@@'))`],
    ['footers', `FROM parquet_kv_metadata('@@')`],
    ['names of files', `FROM glob('@@')`],
    ['two statements', `SELECT 1; SELECT 2`],
    ['a file in an EXPLAIN', `EXPLAIN ANALYZE SELECT * FROM '@@'`],
  ])('%s is refused', async (_, sql) => {
    const error: unknown = await ask(sql.replaceAll('@@', file)).catch((caught: unknown) => caught)
    expect(error, sql).toBeInstanceOf(LakeError)
    expect((error as LakeError).message, sql).toMatch(/^SQL: expected (?:a query that only reads|one SELECT), got /)
  })

  test('views, macros, CTEs and lists are read', async () => {
    for (const sql of [
      `SELECT count(*) FROM points`,
      `FROM history.products LIMIT 1`,
      `DESCRIBE points`,
      `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-02', '2024-01-03', '6h')) FROM pit_join('d', 'supply/current_pit', '24h')`,
      `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-02', '2024-01-03', '6h')) FROM pit_join(d, 'supply/current_pit', '24h')`,
      `SELECT * FROM range(3), unnest([1, 2])`,
    ])
      expect(await ask(sql), sql).toBeInstanceOf(Array)
  })
})
