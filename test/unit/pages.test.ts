import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Desk } from '../../src/interfaces/server/session-manager.ts'
import { pageBytes, Pages } from '../../src/interfaces/server/result-pages.ts'
import { Engine } from '../../src/lake/store/engine.ts'

type AnswerPage = Awaited<ReturnType<Pages['first']>>

let engine: Engine
beforeAll(async () => (engine = await Engine.open()))
afterAll(() => engine.close())

const facts = { lake: 'l', version: 1, digest: 'd', synthetic: true }
const never = new AbortController().signal

/** All pages of a query, each of at most so many rows and bytes. */
async function paged(sql: string, rows: number, bytes: number): Promise<readonly AnswerPage[]> {
  const run = { folder: 'lake', sleep: setTimeout }
  const desk: Pick<Desk, 'sit' | 'turn'> = {
    sit: async () => ({ engine, facts, opening: 1, [Symbol.dispose]: () => undefined }),
    turn: async (_, work) => await work(run),
  }
  let drawn = 0
  using pages = new Pages(desk as Desk, { elapsed: () => 0, draw: () => `c${drawn++}` })
  const question = { sql, knowledge: {} }
  const limits = { rows, room: () => bytes }
  const all = [await pages.first(question, limits, { client: 'a', closed: never })]
  for (let cursor = all[0]?.cursor ?? null; cursor !== null; cursor = all.at(-1)?.cursor ?? null)
    all.push(await pages.next(question, cursor, limits, { client: 'a', closed: never }))
  return all
}

const sizes = (pages: readonly AnswerPage[]): number[] => pages.map(({ rows }) => rows.length)

test('a page holds as many rows as are wanted, and is the last where nothing follows', async () => {
  const sql = 'SELECT n FROM range(6) AS r(n)'
  expect(sizes(await paged(sql, 4, 1000))).toEqual([4, 2])
  expect(sizes(await paged(sql, 3, 1000))).toEqual([3, 3])
  expect(sizes(await paged(sql, 6, 1000))).toEqual([6])
  expect((await paged(sql, 4, 1000)).flatMap(({ rows }) => rows)).toEqual([0, 1, 2, 3, 4, 5].map((n) => `{"n":${n}}`))
})

test('the room of a page is counted in bytes, however many a sign has, with what stands between the rows', async () => {
  for (const [sign, bytes] of [
    ['x', 1],
    ['é', 2],
    ['語', 3],
    ['🦊', 4],
  ] as const) {
    const sql = `SELECT repeat('${sign}', 10) AS a FROM range(4)`
    const row = '{"a":""}'.length + 10 * bytes + 2
    expect(sizes(await paged(sql, 9, 2 * row))).toEqual([2, 2])
    expect(sizes(await paged(sql, 9, 2 * row - 1))).toEqual([1, 1, 1, 1])
    expect(sizes(await paged(sql, 9, row))).toEqual([1, 1, 1, 1])
    await expect(paged(sql, 9, row - 1)).rejects.toThrow(`rows of at most ${row - 1} bytes, got one of ${row}`)
  }
})

test('values of a row that are longer than a page in bytes fail where they are made', async () => {
  const long = (sign: string, count: number): string => `SELECT repeat('${sign}', ${count}) AS a, 'yy' AS b`
  const half = pageBytes / 2
  const room = 10 * pageBytes
  expect(sizes(await paged(long('é', half - 1), 9, room))).toEqual([1])
  await expect(paged(long('é', half), 9, room)).rejects.toThrow(`a row of ${pageBytes + 2} bytes is longer than`)
})
