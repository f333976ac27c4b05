import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { filesIn } from '../helpers/key-search.ts'
import { grow, pulled } from '../helpers/mirrors.ts'
import { standIn, webTo } from '../helpers/s3.ts'
import { scratch } from '../helpers/scratch.ts'

const folder = scratch('hostile-mirror')
const source = join(folder, 'lake')
const secret = join(folder, 'secret.txt')
const sound = '2026-01-01T00-00-00Z-7-fetch.jsonl'
beforeAll(async () => {
  await grow(source, 0, 2)
  mkdirSync(join(source, 'runs'), { recursive: true })
  // A line without its end counts for nothing, and travels.
  writeFileSync(join(source, 'runs', sound), '{"torn')
  writeFileSync(secret, 'of the machine that pulls')
})

/** Names under `runs/` that no run of this program bears. */
const strange = [
  '..%2f..%2fevil.jsonl',
  '%2e%2e%2fevil.jsonl',
  '2026-01-01 odd.jsonl',
  '2026-01-01\nodd.jsonl',
  '2026-01-01T00-00-00Z-8-fetch.jsonl.exe',
  'evil.jsonl',
  `2${'x'.repeat(200)}.jsonl`,
  'below/2026-01-01T00-00-00Z-8-fetch.jsonl',
]

/** A copy of the lake with these files under `runs/`. */
function copyWith(name: string, runs: readonly string[]): string {
  const copy = join(folder, name)
  cpSync(source, copy, { recursive: true })
  for (const run of runs) {
    mkdirSync(dirname(join(copy, 'runs', run)), { recursive: true })
    writeFileSync(join(copy, 'runs', run), '{"evil":true}\n')
  }
  return copy
}

const runsIn = (root: string): readonly string[] => filesIn(root).filter((path) => path.endsWith('.jsonl'))

test('a pull from a folder takes no file of a run with a strange name, and follows no link', async () => {
  const hostile = copyWith('strange', strange)
  symlinkSync(secret, join(hostile, 'runs', '2026-01-01T00-00-00Z-9-fetch.jsonl'))
  const mirror = join(folder, 'of-strange')
  expect(await pulled(mirror, hostile)).toMatchObject({ version: 2, files: 2 })
  expect(runsIn(mirror)).toEqual([`runs/${sound}`])
  expect(filesIn(folder).filter((path) => path.endsWith('evil.jsonl') && !path.startsWith('strange/'))).toEqual([])
})

test('a pull from a bucket takes no file of a run whose key leads elsewhere', async () => {
  await using bucket = await standIn()
  for (const path of filesIn(source))
    if (!/^(?:locks|spool)\/|^ledger\.sqlite/.test(path))
      bucket.objects.set(`x/${path}`, readFileSync(join(source, path)))
  for (const name of [...strange, '../../evil.jsonl', '2026/../../../evil.jsonl'])
    bucket.objects.set(`x/runs/${name}`, Buffer.from('{"evil":true}\n'))
  const mirror = join(folder, 'of-bucket')
  expect(await pulled(mirror, 's3://lake/x', { web: webTo(bucket.url) })).toMatchObject({ version: 2, files: 2 })
  expect(runsIn(mirror)).toEqual([`runs/${sound}`])
  expect(bucket.heard.filter(({ method, key }) => method === 'GET' && key.includes('evil'))).toEqual([])
  expect(existsSync(join(folder, 'evil.jsonl'))).toBe(false)
})

test('a pull refuses the file of a run of 1 GB before a byte of it travels', async () => {
  const hostile = copyWith('large', [])
  const run = '2026-01-01T00-00-00Z-8-fetch.jsonl'
  writeFileSync(join(hostile, 'runs', run), '')
  truncateSync(join(hostile, 'runs', run), 1e9)
  const mirror = join(folder, 'of-large')
  await expect(pulled(mirror, hostile)).rejects.toThrow(`runs/${run}: expected at most 256000000 bytes, got 1000000000`)
  expect(existsSync(join(mirror, 'runs')) ? readdirSync(join(mirror, 'runs')) : []).toEqual([])
})
