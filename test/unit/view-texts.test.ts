import { expect, test } from 'vitest'
import type { Compiled } from '../../src/query/views/compile.ts'
import { partOf } from '../../src/query/views/template.ts'
import { changedObjects, scriptText } from '../../src/query/views/script.ts'

const view = (n: number, name: string, sql = 'SELECT 1 AS a'): Compiled => ({
  name,
  kind: 'view',
  file: `1${n}_${name}.sql`,
  sql: `CREATE OR REPLACE VIEW ${name} AS ${sql};\nCOMMENT ON VIEW ${name} IS 'told';`,
  reads: [],
})

const three = [view(0, 'a'), view(1, 'b'), view(2, 'c')]
const scriptOf = (objects: readonly Compiled[]): string =>
  scriptText({ root: '/lake', version: 3, lake: 'L', objects, tables: {} })

test('only objects whose text changed are made again', () => {
  expect(changedObjects(three, scriptOf(three))).toEqual([])
  const other = view(1, 'b', 'SELECT 2 AS a')
  expect(changedObjects([three[0], other, three[2]] as Compiled[], scriptOf(three))).toEqual([other])
})

test.each([
  ['one more', [...three, view(3, 'd')]],
  ['one less at the end', three.slice(0, 2)],
  ['another name', [three[0], view(1, 'x'), three[2]] as Compiled[]],
])('%s: all of them are made', (_, objects) => expect(changedObjects(objects, scriptOf(three))).toBeUndefined())

test('a part that is not there is named', () => {
  expect(() => partOf('none_such')).toThrow('src/query/views/sql/parts/ has no none_such.sql')
})
