import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { commit } from '../../src/ledger/commit.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { commitDeps, draftOf } from '../helpers/lakes.ts'
import { test } from '../helpers/lake-test.ts'
import { makeQueryLake } from '../helpers/query-lake.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const run = async (cwd: string, ...argv: readonly string[]): Promise<Ended> => await pitlake(cwd, argv)

async function lakeIn(root: string): Promise<void> {
  using ledger = await Ledger.open(join(root, 'data'))
  await commit(ledger, draftOf(join(root, 'data'), 1), commitDeps())
}

test('status: the names that scripts rely on, also without a config file', async ({ root }) => {
  await lakeIn(root)
  const told = await run(root, 'status', '--json')
  expect(told.code).toBe(0)
  const status = JSON.parse(told.out) as Record<string, unknown>
  expect(status).toMatchObject({
    provider: 'sandbox:1',
    synthetic: true,
    version: 1,
    series: 1,
    points: 1,
    files: 1,
    windows: { covered: 1, empty: 0, unsupported: 0, failed: 0 },
    gaps: 0,
    violations: 0,
    newest: '1970-01-02T00:00:00Z',
    registry: { first_snapshot: null, last_snapshot: null, epoch: 0, feed_at: null, records: {} },
  })
  expect(status['bytes']).toBeGreaterThan(0)
  expect((await run(root, 'status')).out).toMatch(/SYNTHETIC DATA/)
  expect(await run(root, 'status', '--data', 'elsewhere')).toMatchObject({ code: 2 })
  expect(existsSync(join(root, 'elsewhere'))).toBe(false)
  expect(await run(root, 'status', '--html', 'no/such/folder/page.html')).toMatchObject({ code: 2 })
})

test('doctor: exit 4 for what is lost, with the remedy; a lost ledger is rebuilt', async ({ root }) => {
  await lakeIn(root)
  const found = await run(root, 'doctor', '--json')
  expect(found.code).toBe(4)
  expect(found.message).toMatch(/lake\.duckdb.*pitlake views/)
  expect(JSON.parse(found.out)).toMatchObject({ ok: false, version: 1, findings: [{ kind: 'views_missing' }] })
  writeFileSync(join(root, 'data', 'ledger.sqlite'), 'x'.repeat(5000))
  const torn = await run(root, 'doctor')
  expect(torn).toMatchObject({ code: 4, message: expect.stringContaining('--rebuild-ledger') })
  const healed = await run(root, 'doctor', '--rebuild-ledger')
  expect(healed.out).toMatch(/mended\s+ledger\.sqlite was made anew/)
  expect(healed.message).not.toMatch(/ledger/)
  expect(await run(root, 'doctor', '--data', 'elsewhere')).toMatchObject({ code: 2 })
})

test('catalog drift: a report, and exit 4 only when asked to be strict', async ({ root }) => {
  const paths = [...catalogue.endpoints.values()].map(({ ask }) => ask)
  writeFileSync(join(root, 'same.json'), JSON.stringify(paths))
  expect(await run(root, 'catalog', 'drift', '--file', 'same.json', '--strict')).toMatchObject({
    code: 0,
    out: expect.stringContaining('no drift'),
  })
  writeFileSync(join(root, 'other.json'), JSON.stringify([...paths.slice(1), 'brand/new_pit']))
  const loose = await run(root, 'catalog', 'drift', '--file', 'other.json')
  expect(loose.code).toBe(0)
  expect(loose.out).toMatch(/^new {7}brand\/new_pit$/m)
  expect(loose.out).toContain(`gone      ${paths[0]}`)
  expect(await run(root, 'catalog', 'drift', '--file', 'other.json', '--strict')).toMatchObject({ code: 4 })
  const json = await run(root, 'catalog', 'drift', '--file', 'other.json', '--json')
  expect(JSON.parse(json.out)).toMatchObject({ new: ['brand/new_pit'], gone: [paths[0]], changed: [] })
  expect(await run(root, 'catalog', 'drift', '--file', 'missing.json')).toMatchObject({ code: 2 })
  expect(readFileSync(join(root, 'other.json'), 'utf8')).toContain('brand/new_pit')
})

test('sql: a variable that nobody knows and an ending that means nothing are refused', async () => {
  const { folder, remove } = await makeQueryLake()
  const sql = async (...argv: readonly string[]): Promise<Ended> =>
    await run(join(folder, '..'), 'sql', '--data', folder, '--format', 'csv', ...argv)
  try {
    expect(await sql('--set', 'as_off=2024-01-03', 'SELECT 1')).toMatchObject({
      code: 2,
      message: expect.stringMatching(/--set as_off: .*did you mean as_of\?/),
    })
    expect(
      await sql('--set', 'k=5', '--out', join(folder, '..', 'k.csv'), `SELECT getvariable('K') AS k`),
    ).toMatchObject({ code: 0 })
    expect(readFileSync(join(folder, '..', 'k.csv'), 'utf8')).toBe('k\n5\n')
    expect(await sql('--set', 'as_of=2024-01-03', '--out', join(folder, '..', 'a.csv'), 'SELECT 1 AS a')).toMatchObject(
      { code: 0 },
    )
    for (const name of ['a.xlsx', 'a.tsv', 'a', 'a.parquet.gz']) {
      const plain = await run(join(folder, '..'), 'sql', '--data', folder, 'SELECT 1', '--out', name)
      expect(plain).toMatchObject({ code: 2, message: expect.stringContaining('.csv.gz') })
      expect(existsSync(join(folder, '..', name))).toBe(false)
    }
    writeFileSync(join(folder, '..', 'q.sql'), 'SELECT 1')
    const stamped = await run(join(folder, '..'), 'stamp', 'q.sql', '--data', folder, '--out', 'r.csv')
    expect(stamped).toMatchObject({ code: 2, message: expect.stringContaining('.parquet') })
  } finally {
    await remove()
  }
})
