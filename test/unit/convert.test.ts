import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { day } from '../../src/base/time.ts'
import { at, convert, Converting, t1 } from '../helpers/converting.ts'

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

test('a conversion lists the missing intervals of each body', async () => {
  const content = JSON.stringify([2, 3, 6].map((i) => ({ t: t1 + i * day, v: i })))
  const result = await convert(made.engine, made.job([await made.body(content, { since: t1, until: t1 + 9 * day })]))
  const windows = result.bodies[0]?.missing.map((w) => [(w.since - t1) / day, (w.until - t1) / day])
  expect(windows).toEqual([
    [0, 2],
    [4, 6],
    [7, 9],
  ])
  const months = JSON.stringify(['2024-01-01', '2024-04-01'].map((text) => ({ t: at(text), v: 1 })))
  const monthly = await convert(made.engine, made.job([await made.body(months)], { interval: '1month' }))
  expect(monthly.bodies[0]?.missing[0]).toEqual({ since: at('2024-02-01'), until: at('2024-04-01') })
  const empty = await convert(made.engine, made.job([await made.body('[]', { since: t1, until: t1 + 3 * day })]))
  expect(empty.bodies[0]).toMatchObject({ state: 'empty', missing: [{ since: t1, until: t1 + 3 * day }] })
})

test('a conversion leaves no file but its bodies and its result', async () => {
  const before = await readdir(made.folder)
  const task = made.job([await made.body(`[{"t":${t1},"v":-0,"x":1}]`), await made.body('nonsense')])
  await convert(made.engine, task)
  const left = (await readdir(made.folder)).filter((name) => !before.includes(name))
  expect(left.toSorted()).toEqual(
    [...task.bodies.map((b) => b.file), task.out].map((path) => path.slice(made.folder.length + 1)).toSorted(),
  )
})

test('a body file that is gone is an error, not an empty answer', async () => {
  const gone = { ...(await made.body('[]')), file: join(made.folder, 'gone.json') }
  await expect(convert(made.engine, made.job([gone]))).rejects.toThrow('ENOENT')
})
