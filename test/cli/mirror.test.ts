// @module-tag full
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { commandTable } from '../../src/interfaces/commands/table.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { pitlake } from '../helpers/command.ts'
import { grow } from '../helpers/mirrors.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { scratch } from '../helpers/scratch.ts'

const folder = scratch('mirror')
const source = join(folder, 'lake')
const mirror = join(folder, 'mirror')
const env = {
  PITLAKE_METRICS_URL: 'http://127.0.0.1:9',
  PITLAKE_METRICS_KEY: 'nobody-answers',
  PITLAKE_REGISTRY_URL: 'http://127.0.0.1:9/v1',
  PITLAKE_REGISTRY_KEY: 'nobody-answers',
}

beforeAll(async () => {
  await grow(source, 0, 3)
  writeFileSync(join(folder, 'q.sql'), 'SELECT 1 AS n')
  writeFileSync(join(folder, 'p.csv'), 't,v\n2024-01-01,1\n2024-01-02,2\n')
  await pitlake(folder, ['keygen', '--out', 'k.key', '--data', source])
  await pitlake(folder, ['pull', source, '--data', mirror])
})

/** Commands that write nothing to a lake, whatever they are told. */
const readers = new Set(
  `init, init-ci, catalog list, catalog show, catalog export, catalog check, catalog import, catalog drift, plan, violations list,
  audit availability, status, lookahead, certify, keygen, versions, sql, panel, replay, when, explain-change, registry status, registry diff, sandbox,
  mcp, serve, completion`.split(/,\s+/),
)
/** Those that may write to a mirror, or write to a lake of their own. */
const own = new Set(['pull', 'restore', 'views', 'demo'])
/** What makes the others write. */
const told: Readonly<Record<string, readonly (readonly string[])[]>> = {
  vacuum: [['--yes']],
  publish: [['out']],
  backup: [['out']],
  doctor: [['--repair'], ['--rebuild-ledger'], ['--forget-lost'], ['--adopt']],
  stamp: [['q.sql', '--out', 'r.parquet']],
  stress: [['q.sql', '--statistic', 'avg(n)', '--out', 'r.parquet']],
  'violations acknowledge': [['0123456789ab', '--why', 'seen']],
  fetch: [['--assets', 'BTC']],
  import: [['p.csv', '--as', 'x', '--asset', '=BTC', '--t', 't', '--value', 'v', '--interval', '24h']],
  preregister: [['q.sql']],
  head: [
    ['--key', 'k.key'],
    ['--attach', 'q.sql'],
  ],
}
const writers = commandTable.map(({ name }) => name).filter((name) => !readers.has(name) && !own.has(name))

/** Every file with its bytes, but for locks and the index, which readers make. */
function tree(root: string): Record<string, string> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
  const kept = paths.filter((path) => !/^(?:locks|spool)\/|^ledger\.sqlite/.test(path))
  return Object.fromEntries(kept.map((path) => [path, readFileSync(join(root, path)).toString('base64')]))
}

test.each(
  writers.flatMap((name) => (told[name] ?? [[]]).map((args) => [[name, ...args].join(' '), name, args] as const)),
)('%s is refused in a mirror and changes nothing', async (_, name, args) => {
  const before = tree(mirror)
  const { code, message, out } = await pitlake(folder, [...name.split(' '), ...args, '--data', mirror], env)
  expect(code).toBe(2)
  expect(`${message}${out}`).toContain(`a mirror of ${source}`)
  expect(tree(mirror)).toEqual(before)
})

test('no job can commit to a mirror by going around the command line', async () => {
  using ledger = await Ledger.open(mirror)
  const draft = { job: 'fetch', run: 'r', provider: { metrics: 'x', synthetic: true }, state: { a: 1 } }
  await expect(commit(ledger, draft, rewriteDeps())).rejects.toThrow('a mirror of')
})

test('readers, views and status work, and say what it is', async () => {
  expect(await pitlake(folder, ['views', '--data', mirror])).toMatchObject({ code: 0 })
  const status = await pitlake(folder, ['status', '--json', '--data', mirror])
  expect(JSON.parse(status.out)).toMatchObject({ mirror_of: source, version: 3 })
  expect((await pitlake(folder, ['status', '--data', mirror])).out).toContain(`mirror of    ${source}`)
  expect(JSON.parse((await pitlake(folder, ['status', '--json', '--data', source])).out)).toMatchObject({
    mirror_of: null,
  })
  const query = ['sql', 'SELECT count(*) AS n FROM points', '--format', 'json', '--out', 'n.json', '--data', mirror]
  expect(await pitlake(folder, query)).toMatchObject({ code: 0 })
  expect(JSON.parse(readFileSync(join(folder, 'n.json'), 'utf8'))).toEqual([{ n: 60 }])
  expect(await pitlake(folder, ['doctor', '--json', '--data', mirror])).toMatchObject({ code: 0 })
  expect((await pitlake(folder, ['vacuum', '--data', mirror])).code).toBe(0)
})

test('files that a mirror lost are restored by a pull, as status announces', async () => {
  const lost = Object.keys(tree(mirror)).find((path) => path.startsWith('points/')) ?? ''
  rmSync(join(mirror, lost))
  expect(await pitlake(folder, ['status', '--check', '--data', mirror])).toMatchObject({
    code: 4,
    out: expect.stringMatching(`integrity: 1 file of the lake is lost or cut.*; pitlake pull ${source}\n`) as string,
  })
  expect((await pitlake(folder, ['pull', source, '--data', mirror])).out).toContain('1 file')
  expect(await pitlake(folder, ['status', '--check', '--data', mirror])).toMatchObject({ code: 0 })
})

test('a pull says what it did', async () => {
  expect((await pitlake(folder, ['pull', source, '--data', mirror])).out).toBe(
    `${mirror} mirrors version 3 of ${source} already\n`,
  )
  const told = JSON.parse((await pitlake(folder, ['pull', source, '--json', '--data', mirror])).out) as unknown
  expect(told).toMatchObject({ source, version: 3, before: 3, files: 0, bytes: 0, entries: 0, stamps: 0 })
  const half = join(folder, 'half')
  await pitlake(folder, ['pull', source, '--data', half])
  rmSync(join(half, 'journal'), { recursive: true })
  rmSync(join(half, 'ledger.sqlite'))
  expect(await pitlake(folder, ['fetch', '--assets', 'BTC', '--data', half], env)).toMatchObject({ code: 2 })
  expect(await pitlake(folder, ['pull', source, '--data', half])).toMatchObject({ code: 0 })
  expect(await pitlake(folder, ['pull', 'gs://x', '--data', half])).toMatchObject({ code: 2 })
})

test('a restore replaces changed files in its target, and the result is an independent lake', async () => {
  const back = join(folder, 'back')
  await pitlake(folder, ['pull', source, '--data', back])
  const path = Object.keys(tree(back)).find((name) => name.startsWith('points/')) ?? ''
  const sound = readFileSync(join(back, path))
  writeFileSync(join(back, path), sound.with(100, (sound[100] ?? 0) ^ 1))
  const { code, out } = await pitlake(folder, ['restore', source, '--json', '--data', back])
  expect({ code, ...(JSON.parse(out) as object) }).toMatchObject({ code: 0, version: 3, files: 1 })
  expect(readFileSync(join(back, path)).equals(sound)).toBe(true)
  expect(JSON.parse(readFileSync(join(back, 'lake.json'), 'utf8'))).not.toHaveProperty('mirror_of')
})
