// @module-tag full
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import type { ResearchReport } from '../../src/trust/research/judged-item.ts'
import { pitlake } from '../helpers/command.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { noiseAndRisingSupply } from '../helpers/lakes/noise-and-rising-supply.ts'
import { need } from '../helpers/needs.ts'
import { program } from '../helpers/program.ts'
import { makeFolder } from '../helpers/folders.ts'

const lake = lakeOfFile(noiseAndRisingSupply)
let home = ''
beforeEach(() => {
  home = makeFolder('research')
  return () => rmSync(home, { recursive: true, force: true })
})

const grid = `WITH d AS (SELECT ts, 'BTC' AS asset FROM calendar('2024-01-05', '2024-01-20', '1 day'))`
const clean = `${grid} SELECT ts, asset, v FROM pit_join('d', 'addresses/active_count_pit', '24h')`
const leak = `SELECT t AS ts, asset, v FROM points`

function put(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true })
    writeFileSync(join(home, name), text)
  }
}

const options = (): string[] => ['--data', lake.root, '--cutoffs', '3', '--cache', 'verdicts.json']

async function look(...words: readonly string[]): Promise<{ code: number; message: string; report: ResearchReport }> {
  const { code, message, out } = await pitlake(home, ['lookahead', ...words, ...options(), '--json'])
  return { code, message, report: JSON.parse(out) as ResearchReport }
}

const verdicts = ({ items }: ResearchReport): string[] =>
  items.map(({ file, verdict, cached }) => `${file} ${verdict}${cached ? ' cached' : ''}`)

test('a folder is judged as a whole: leaks end it with 4, and what is no query is skipped', async () => {
  put({
    'r/clean.sql': clean,
    'r/sub/leak.sql': leak,
    'r/make.sql': 'CREATE TABLE a (b INTEGER)',
    'r/broken.sql': 'SELECT FROM WHERE',
    'r/notes.txt': 'not looked at',
    'r/node_modules/x.sql': leak,
    'r/.hidden/x.sql': leak,
  })
  const { code, message, report } = await look('r')
  expect(verdicts(report)).toEqual([
    'r/broken.sql skipped',
    'r/clean.sql clean',
    'r/make.sql skipped',
    'r/sub/leak.sql leak',
  ])
  expect([code, message]).toEqual([4, expect.stringMatching(/^r\/sub\/leak\.sql:1 looks ahead: .*; use the pit joins/)])
  expect(report.items[0]?.reason).toMatch(/^no query: .*syntax error/i)
})

test('a query that cannot run has no verdict, and the run ends with 6', async () => {
  put({ 'a.sql': 'SELECT ts FROM nowhere', 'b.sql': clean })
  const { code, report } = await look('a.sql', 'b.sql')
  expect([code, verdicts(report)]).toEqual([6, ['a.sql undecided', 'b.sql clean']])
  expect(report.items[0]?.reason).toContain('nowhere does not exist')
})

test('a query over a file of the machine is not read, and has no verdict', async () => {
  put({ 'a.sql': `SELECT ts FROM read_csv('/etc/passwd')`, 'b.sql': `COPY (SELECT 1) TO 'out.csv'` })
  const { report } = await look('.')
  expect(verdicts(report)).toEqual(['a.sql undecided', 'b.sql skipped'])
  expect(existsSync(join(home, 'out.csv'))).toBe(false)
})

test('a verdict of an earlier run is taken for the same text, options and lake only', async () => {
  put({ 'a.sql': clean, 'b.sql': leak })
  expect(verdicts((await look('.')).report)).toEqual(['a.sql clean', 'b.sql leak'])
  const again = await look('.')
  expect([again.code, verdicts(again.report)]).toEqual([4, ['a.sql clean cached', 'b.sql leak cached']])
  expect(verdicts((await look('.', '--fresh')).report)).toEqual(['a.sql clean', 'b.sql leak'])
  expect(verdicts((await look('.', '--set', 'backfill=rule')).report)).toEqual(['a.sql clean', 'b.sql leak'])
  put({ 'b.sql': `${clean} -- changed` })
  expect(verdicts((await look('.')).report)).toEqual(['a.sql clean cached', 'b.sql clean'])
  put({ 'verdicts.json': '{ damaged' })
  expect(verdicts((await look('.')).report)).toEqual(['a.sql clean', 'b.sql clean'])
})

test('only files that differ from a revision are judged, new ones included', async () => {
  put({ 'r/same.sql': leak, 'r/edited.sql': clean, 'r/gone.sql': clean })
  const git = (...words: readonly string[]): void => {
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { cwd: home, stdio: 'ignore' })
  }
  git('init', '-q')
  git('add', '.')
  git('commit', '-qm', 'Begin')
  put({ 'r/edited.sql': `${clean} -- again`, 'r/new file.sql': clean })
  rmSync(join(home, 'r/gone.sql'))
  const { code, report } = await look('r', '--changed-since', 'HEAD')
  expect([code, verdicts(report)]).toEqual([0, ['r/edited.sql clean', 'r/new file.sql clean']])
  const inside = await pitlake(join(home, 'r'), ['lookahead', '.', ...options(), '--changed-since', 'HEAD'])
  expect(inside.out).toContain('edited.sql:1')
  const strange = await pitlake(home, ['lookahead', 'r', ...options(), '--changed-since', '--output=x'])
  expect([strange.code, strange.message]).toEqual([2, expect.stringMatching(/expected a revision of this repository/)])
})

test('the report is also written as JUnit, and as annotations for GitHub', async () => {
  put({ 'a.sql': leak })
  const words = ['lookahead', 'a.sql', ...options(), '--junit', 'look.xml', '--format', 'github']
  const { code, out } = await pitlake(home, words)
  expect(code).toBe(4)
  expect(out).toMatch(/^::error file=a\.sql,line=1,title=Look-ahead::.*\nverdict /)
  expect(readFileSync(join(home, 'look.xml'), 'utf8')).toContain('<failure type="leak"')
})

test('one SQL file is judged as before, with the report on its rows', async () => {
  put({ 'a.sql': leak })
  const one = await pitlake(home, ['lookahead', 'a.sql', '--data', lake.root, '--cutoffs', '3', '--json'])
  expect(JSON.parse(one.out)).toMatchObject({ verdict: 'leak', differences: expect.any(Array) })
})

test('without a Python marked functions are not checked, and the run ends with 6', async () => {
  put({ 'a.py': '@pitlake.point_in_time\ndef signal(lake): ...\n' })
  const env = { PITLAKE_PYTHON: join(home, 'no-python') }
  const { code, out } = await pitlake(home, ['lookahead', 'a.py', ...options()], env)
  expect([code, out]).toEqual([
    6,
    expect.stringMatching(/not checked {2}a\.py:1 signal {2}Python with the package pitlake is not at/),
  ])
})

test('marked functions are tried by Python with the options of their mark', async (context) => {
  const python = need(context, 'peers')
  const days = 'lake.calendar("2024-01-05", "2024-02-05", "1 day", ["BTC"])'
  put({
    'a.py': `import pitlake
@pitlake.point_in_time(cutoffs=4)
def honest(lake):
    return lake.panel(${days}, {"v": "addresses/active_count_pit"}).df()
@pitlake.point_in_time(cutoffs=4)
def peeks(lake):
    print("{}")
    frame = honest(lake)
    return frame.assign(v=frame["v"] - frame["v"].mean())
@pitlake.point_in_time(cutoffs=4, labels=["v"])
def target(lake):
    return peeks(lake).assign(one=1)
`,
    'b.py': 'import nowhere_at_all\n@pitlake.point_in_time\ndef signal(lake): ...\n',
  })
  const env = { PITLAKE_PYTHON: python, PYTHONPATH: join(import.meta.dirname, '../../python') }
  const { code, out } = await program(['lookahead', '.', ...options(), '--json'], { cwd: home, env })
  const { items } = JSON.parse(out) as ResearchReport
  expect([code, items.map(({ name, verdict }) => `${name} ${verdict}`)]).toEqual([
    4,
    ['honest clean', 'peeks leak', 'target clean', 'signal not checked'],
  ])
  expect(items[1]?.leak).toMatch(/^on .* it gives v /)
  expect(items[3]?.reason).toMatch(/cannot import the file: .*nowhere_at_all/)
})
