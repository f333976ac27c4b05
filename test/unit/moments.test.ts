import { afterAll, beforeAll, expect, test } from 'vitest'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { utcSql } from '../../src/query/views/template.ts'

/* Moments as text: an abbreviation such as CST names several zones, so it is refused and not guessed. */

let engine: Engine
beforeAll(async () => (engine = await Engine.open()))
afterAll(() => engine.close())

const read = async (text: string): Promise<unknown> =>
  (
    await engine.rows(`SELECT CAST(${utcSql('said')} AS VARCHAR) AS at FROM (SELECT unnest([${quote(text)}]) AS said)`)
  )[0]?.['at']

test.each([
  ['2024-07-01', '2024-07-01 00:00:00+00'],
  ['2024-07-01 09:30:00', '2024-07-01 09:30:00+00'],
  ['2024-07-01T09:30:00Z', '2024-07-01 09:30:00+00'],
  ['2024-07-01T09:30:00.5Z', '2024-07-01 09:30:00.5+00'],
  ['2024-07-01 09:30:00 UTC', '2024-07-01 09:30:00+00'],
  ['2024-07-01 09:30:00 GMT', '2024-07-01 09:30:00+00'],
  ['2024-07-01 09:30:00+02', '2024-07-01 07:30:00+00'],
  ['2024-07-01 09:30:00 America/New_York', '2024-07-01 13:30:00+00'],
])('%j is %s', async (text, at) => {
  expect(await read(text)).toBe(at)
})

test.each(['CST', 'IST', 'BST', 'PST', 'EST5EDT', 'AM'])('an abbreviated zone, %s, is refused', async (zone) => {
  await expect(read(`2024-07-01 09:30:00 ${zone}`)).rejects.toThrow('Conversion Error')
})
