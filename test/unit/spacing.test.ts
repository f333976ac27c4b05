import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { spacingsOf, weekdayOf } from '../../src/sources/points/spacing.ts'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { weekdays } from '../../src/base/time.ts'
import { scratch } from '../helpers/scratch.ts'

const folder = scratch('spacing')
const day = 86_400
/** A Monday. */
const monday = Date.UTC(2024, 1, 26) / 1000
let engine: Engine
beforeAll(async () => (engine = await Engine.open(':memory:', { threads: 1 })))
afterAll(() => {
  engine.close()
})

function bodyOf(body: unknown, name = 'body'): string {
  const file = join(folder, `${name}.json`)
  writeFileSync(file, typeof body === 'string' ? body : JSON.stringify(body))
  return file
}
const points = (...ts: readonly number[]): string => bodyOf(ts.map((t) => ({ t, v: 1 })))

test.each([
  [[0, 600, 1200], '10m'],
  [[0, 60, 120], '10m'],
  [[0, 3599, 7200], '10m'],
  [[0, 3600, 7200], '1h'],
  [[0, day, 2 * day], '24h'],
  [[9 * day, 0, 3 * day, 4 * day], '24h'],
  [[0, 7 * day, 21 * day], '1w'],
  [[0, 28 * day, 59 * day], '1month'],
  [[0, 365 * day, 730 * day], '1month'],
  [[0, day], null],
  [[0, day, day], null],
  [[], null],
])('the two nearest of points at %j are %s apart', async (ts, interval) => {
  expect(await spacingsOf(engine, [points(...ts)])).toEqual([interval])
})

test('a body that is no array of points has no spacing and no week', async () => {
  for (const body of ['{"error":"no"}', '<html>', '', [{ v: 1 }, { v: 2 }, { v: 3 }]]) {
    expect(await spacingsOf(engine, [bodyOf(body)])).toEqual([null])
    expect(await weekdayOf(engine, bodyOf(body), '1w')).toBeNull()
  }
})

test('the spacing of many bodies is read by one statement, or one by one if a body is damaged', async () => {
  const spaced = (gap: number, name: string): string =>
    bodyOf(
      [0, gap, 2 * gap].map((t) => ({ t, v: 1 })),
      name,
    )
  const files = [
    spaced(day, 'a'),
    bodyOf([], 'b'),
    spaced(600, 'c'),
    bodyOf([{ t: 5, v: 1 }], 'd'),
    spaced(7 * day, 'e'),
  ]
  const { rows } = engine
  let asked = 0
  engine.rows = async <T extends Row = Row>(sql: string) => {
    asked++
    return (await rows.call(engine, sql)) as T[]
  }
  try {
    expect(await spacingsOf(engine, files)).toEqual(['24h', null, '10m', null, '1w'])
    expect(asked).toBe(1)
    const torn = files.toSpliced(2, 0, bodyOf('<html>', 'f'))
    expect(await spacingsOf(engine, torn)).toEqual(['24h', null, null, '10m', null, '1w'])
    expect(await spacingsOf(engine, [])).toEqual([])
  } finally {
    engine.rows = rows
  }
})

test('weeks begin on the one day on which all of a body do, before 1970 too', async () => {
  for (const [n, weekday] of weekdays.entries()) {
    const start = monday + n * day
    expect(await weekdayOf(engine, points(start, start + 7 * day, start - 4000 * 7 * day), '1w')).toBe(weekday)
  }
  expect(await weekdayOf(engine, points(monday, monday + 8 * day), '1w')).toBeNull()
  expect(await weekdayOf(engine, points(monday + 3600, monday + 3600 + 7 * day), '1w')).toBeNull()
})
