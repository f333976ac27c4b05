import { expect, test } from 'vitest'
import { itemsOf } from '../../src/trust/research/research-items.ts'

const query = 'SELECT ts, v FROM points'

/** Line, name and reason of each item of a file. */
const told = (file: string, text: string) => itemsOf(file, text).map(({ line, name, skipped }) => [line, name, skipped])

const notebook = (...sources: readonly (string | readonly string[])[]): string =>
  JSON.stringify({ cells: sources.map((source) => ({ cell_type: 'code', source })) }, null, 1)

test('a SQL file is one query, whatever comes before its last statement', () => {
  expect(itemsOf('q.sql', `SET VARIABLE a = 1; ${query};`)).toMatchObject([{ kind: 'query', line: 1, skipped: null }])
})

test.for([
  ['a statement that makes a table', 'CREATE TABLE a (b INTEGER)', 'no query: the last statement is CREATE'],
  ['a comment alone', '-- nothing', 'no query: no statement'],
  ['prose', 'the query is elsewhere', 'no query: the last statement is THE'],
  [
    'a template',
    "SELECT 1;\nSELECT * FROM {{ ref('a') }}",
    'no query: a template (line 2); name the SQL that is made from it',
  ],
  ['bytes that are no text', 'SQL\0ite', 'not a text file'],
] as const)('%s is skipped with the reason', ([, text, why]) => {
  expect(told('q.sql', text)).toEqual([[1, null, why]])
})

test('braces in a quoted text make no template', () => {
  expect(told('q.sql', "SELECT ts, '{{' AS a FROM points")).toEqual([[1, null, null]])
})

test('a comment leaves a query out, or names its column of time and its labels', () => {
  expect(told('q.sql', `-- pitlake: skip it is a report\n${query}`)).toEqual([[1, null, 'marked: it is a report']])
  const [item] = itemsOf('q.sql', `-- pitlake: ts=at labels=y,z\n${query}`)
  expect(item?.own).toEqual({ ts: 'at', labels: ['y', 'z'] })
})

test('a notebook gives its %%pit cells with the line of each', () => {
  const text = notebook('import pitlake', ['%%pit lake -o frame\n', query], ['%%pit\n', 'DROP TABLE a'])
  const lines = text.split('\n')
  const at = (nth: number): number => lines.flatMap((line, n) => (line.includes('%%pit') ? [n + 1] : []))[nth] ?? 0
  expect(told('a.ipynb', text)).toEqual([
    [at(0), 'cell 2', null],
    [at(1), 'cell 3', 'no query: the last statement is DROP'],
  ])
  expect(itemsOf('a.ipynb', text)[0]?.text).toBe(query)
})

test.for([
  ['no cell of SQL', notebook('import pitlake'), 'no cell begins with %%pit'],
  ['no JSON', '{', 'not a notebook: expected JSON with a list of cells'],
  ['a list', '[]', 'not a notebook: expected JSON with a list of cells'],
] as const)('a notebook with %s is skipped with the reason', ([, text, why]) => {
  expect(told('a.ipynb', text)).toEqual([[1, null, why]])
})

test('a Python file gives its marked functions, not those in a long text', () => {
  const text = `"""\n@pitlake.point_in_time\ndef example(lake): ...\n"""\n
@pitlake.point_in_time(labels=["y"])
@cached
def momentum(lake):
    return 1

@point_in_time
async def carry(lake): ...

def plain(lake): ...
class A:
    @point_in_time
    def inner(self): ...
`
  expect(told('a.py', text)).toEqual([
    [6, 'momentum', null],
    [11, 'carry', null],
    [16, 'inner', 'not at the top level of its file; move the function there'],
  ])
  expect(told('a.py', 'x = 1')).toEqual([[1, null, 'no function is marked with @pitlake.point_in_time']])
})
