import { expect, test } from 'vitest'
import { vintageWords } from '../../src/query/views/joins-vintages.ts'
import { lastVintagesIn } from '../../src/query/views/points-vintages.ts'
import { readObjects } from '../../src/query/views/template.ts'

test('a lake without revisable series has the texts of one that knows of no vintages', () => {
  const own = vintageWords([])
  expect([own.known(true), own.number, own.observed('p'), own.isRevised('x')]).toEqual([
    '_pit_all_points AS MATERIALIZED',
    'row_number()',
    '',
    null,
  ])
  const words = [own.current('p', 'k'), own.lived('p'), own.vintages('w.asset', 'true', 'true')]
  expect(words).toEqual(['', '', ''])
  expect(own.mayLapse({ skips: 's', revised: 'r', last: 'l' })).toBeNull()
  for (const object of readObjects([])) expect(lastVintagesIn(object, [])).toBe(object)
  const [points] = readObjects([]).filter(({ name }) => name === 'points')
  expect(points && lastVintagesIn(points, ['m'])).toMatchObject({ stored: points?.body })
  expect(points && lastVintagesIn(points, ['m']).text).toContain('last_vintage')
})
