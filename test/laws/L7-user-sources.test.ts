import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { unreadableFile } from '../../src/sources/user-files/files.ts'
import { withDesk } from '../helpers/importing.ts'
import { scratch } from '../helpers/scratch.ts'
import { readUserRows, refusalOf } from '../helpers/user-files.ts'

const folder = scratch('sources')
const head = 'asset,t,value\n'

function put(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

test.each([
  ['two series', 'A_20240205,B_20240205', /columns A_20240205 and B_20240205: .*vintages of one series.*A and B/],
  ['two series on different days', 'A_20240205,B_20240305', /columns A_20240205 and B_20240305: .*A and B/],
  ['a series and none', '2024-02-05,B_20240305', /columns 2024-02-05 and B_20240305: .*no name and B/],
  ['a day in two spellings', 'A_20240205,A_2024-02-05', /columns A_20240205 and A_2024-02-05: .*two for 2024-02-05/],
  ['a name twice', 'A_20240205,A_20240205', /columns A_20240205 and A_20240205: .*two for 2024-02-05/],
])('vintages in columns of %s are refused with the names of the columns', async (_, columns, refusal) => {
  const file = put('wide.csv', `t,${columns}\n2024-01-01,1,\n2024-02-01,,2\n`)
  expect(await refusalOf([file], { asset: '=US', interval: '1month' })).toMatch(refusal)
})

test('folders with the signs of globs in their names are read, also by a glob below them', async () => {
  const home = join(folder, 'data[2024]*')
  mkdirSync(join(home, 'more?'), { recursive: true })
  writeFileSync(join(home, 'a.csv'), `${head}BTC,2024-03-01,1\n`)
  writeFileSync(join(home, 'more?', 'b.csv'), `${head}BTC,2024-03-02,2\n`)
  const count = async (name: string, cwd: string): Promise<number> => (await readUserRows([name], {}, cwd)).length
  expect(await count(home, '/')).toBe(2)
  expect(await count('data[2024]*', folder)).toBe(2)
  expect(await count('.', home)).toBe(2)
  expect(await count('[ab].csv', home)).toBe(1)
  expect(await count('more?/*.csv', home)).toBe(1)
  expect(await count(join(home, '**', '*.csv'), '/')).toBe(2)
})

test('verify finds the files of a glob in a folder with the signs of globs in its name', async () => {
  await withDesk(async ({ folder: home, take, run }) => {
    mkdirSync(join(home, 'data[1]'))
    writeFileSync(join(home, 'data[1]', 'a.csv'), `${head}BTC,2024-03-01,1\n`)
    expect((await take([join(home, 'data[1]', '*.csv'), '--as', 'p', '--interval', '24h'])).message).toBe('')
    const verified = JSON.parse((await run(['verify', '--json'])).out) as { own: { files: { state: string }[] } }
    expect(verified.own.files.map(({ state }) => state)).toEqual(['held'])
  })
})

const select = `SELECT 'BTC' AS asset, DATE '2024-03-01' AS t, 1.0 AS value`

test.each([
  `(${select})`,
  `((${select}))`,
  `${select};`,
  `${select} -- note`,
  `${select}; -- note`,
  `-- note\n${select}`,
  `/* note */ ${select}`,
  `SELECT * FROM (${select} -- note; with a semicolon\n)`,
  `WITH x AS (${select}) FROM x`,
  `SELECT * FROM (PIVOT (SELECT 'BTC' AS asset, DATE '2024-03-01' AS t, 'value' AS name, 1.0 AS v) ON name USING first(v))`,
])('a SELECT with brackets or comments around it is read: %s', async (text) => {
  expect(await readUserRows([text], {})).toHaveLength(1)
})

test.each([
  [`${select}; ${select}`, /the SELECT: expected one SELECT, got several statements/],
  [`${select}) UNION ALL (${select}`, /the SELECT: expected one SELECT, got Parser Error: syntax error at or near/],
  ['WITH x AS (SELECT 1 AS a) INSERT INTO y FROM x', /the SELECT: expected one SELECT, got .*another kind/],
  ['SELECT a FROM', /the SELECT: expected one SELECT, got Parser Error/],
])('a text that is not one SELECT is refused: %s', async (text, refusal) => {
  expect(await refusalOf([text], {})).toMatch(refusal)
})

test('names with control signs or blanks of Unicode at their ends are refused with their row', async () => {
  await withDesk(async (desk) => {
    for (const name of ['B\u0085C', '\u00a0BTC', 'BTC\u3000', '\ufeffBTC', 'BTC\u2028', 'B\tC']) {
      const file = desk.put('p.csv', `${head}ETH,2024-03-01,1\n"${name}",2024-03-01,1\n`)
      const { message } = await desk.take([file, '--as', 'p', '--interval', '24h'])
      expect(message, JSON.stringify(name)).toMatch(/row 2: asset: expected a name without control signs/)
    }
    const file = desk.put('p.csv', `${head}ETH,2024-03-01,1\n`)
    const { message } = await desk.take([file, '--as', 'p', '--interval', '24h', '--asset', '=BTC\u00a0'])
    expect(message).toMatch(/--asset: expected a name without control signs/)
  })
})

test('a lack of memory or disk is not blamed on the file', () => {
  const lacks = ['Out of Memory Error: could not allocate block', 'IO Error: No space left on device']
  for (const words of lacks) expect(unreadableFile('a.csv', new Error(words))).toMatchObject({ kind: 'incomplete' })
  expect(unreadableFile('a.csv', new Error('Invalid Input Error: CSV Error on Line: 3'))).toMatchObject({
    kind: 'usage',
  })
})

test('a SELECT that does not run is told as such', async () => {
  expect(await refusalOf(['SELECT no_such FROM range(3)'], {})).toMatch(
    /the SELECT: expected one that runs, got .*no_such/,
  )
})
