import { mkdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import {
  countSchemaChanges,
  findingLine,
  readFindings,
  readHeld,
  readKeys,
  readLastEvents,
} from '../../src/sources/registry/status.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake, registryFile } from '../../src/lake/store/layout.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import type { RecordFinding } from '../../src/sources/registry/history.ts'
import { partOf } from '../helpers/part-of.ts'

/** A lake whose registry tables hold these rows, each table's in two files. */
async function withTables(
  tables: Readonly<Record<string, readonly string[]>>,
  work: (ledger: Ledger, engine: Engine) => Promise<void>,
): Promise<void> {
  await inFolder(async (root) => {
    using ledger = await Ledger.open(root)
    using engine = await Engine.open(':memory:', { threads: 1 })
    const add = []
    mkdirSync(inLake(root, 'spool/r'), { recursive: true })
    for (const [table, selects] of Object.entries(tables))
      for (const [n, select] of selects.entries()) {
        const temporary = `spool/r/${table}-${n}.parquet`
        await engine.run(`COPY (${select}) TO ${quote(inLake(root, temporary))} (FORMAT parquet)`)
        const none = { label: '', metric: null, interval: null, min_t: null, max_t: null, digest: null, meta: {} }
        add.push({ temporary, path: registryFile(table, `f-${n}`, null), table, rows: 1, ...none })
      }
    await commit(ledger, { job: 'sync', run: 'r', provider: { synthetic: true }, add }, commitDeps())
    await work(ledger, engine)
  })
}

const at = (seconds: number): string => `make_timestamptz(${seconds * 1_000_000})`

test('a key is known since its first appearance, and a repeated change counts once', async () => {
  const row = (path: string, seconds: number, initial: boolean, kind = 'NULL', value = 'NULL'): string =>
    `SELECT 'issuers' AS resource, '${path}' AS path, ${at(seconds)} AS "at", ${initial} AS initial, ${kind}::VARCHAR AS kind, ${value}::VARCHAR AS value`
  const changes = [
    [row('a', 100, true), row('a.b', 300, false), row('c', 300, false)].join(' UNION ALL '),
    [
      row('a', 500, false),
      row('a.b', 200, false),
      row('c', 400, false, `'value'`, `'x'`),
      row('c', 450, false, `'value'`, `'y'`),
    ].join(' UNION ALL '),
  ]
  await withTables({ schema_changes: changes }, async (ledger, engine) => {
    const { top, reportedChanges } = (await readKeys(ledger, engine)).get('issuers') ?? {}
    expect([top?.get('a')?.since, top?.get('a')?.below.get('b')?.since, top?.get('c')?.since]).toEqual(
      [100, 200, 300].map((seconds) => seconds * 1_000_000),
    )
    expect([...(reportedChanges ?? [])]).toHaveLength(2)
    // What the first snapshot showed is no change, whatever was told of it later.
    expect(await countSchemaChanges(ledger, engine)).toBe(4)
  })
})

test('a recorded finding is recognised when found again, even with records next to it', async () => {
  const found: readonly RecordFinding[] = [
    { kind: 'silent_change', resource: 'issuers', id: 'i1', detail: 'name' },
    { kind: 'silent_change', resource: 'issuers', id: 'i1', detail: 'name', held: '{"a":1}', offered: '{"a":2}' },
    { kind: 'lost_event', resource: 'issuers', id: 'i2', detail: 'x', held: '{"a":1}', offered: null },
  ]
  const text = (value: string | null | undefined): string => (value ? quote(value) : 'NULL')
  const rows = found.map(
    ({ kind, resource, id, detail, held, offered }) =>
      `SELECT ${at(1)} AS "at", ${[kind, resource, id, detail].map(quote).join(', ')}, ${text(held)}::VARCHAR, ${text(offered)}::VARCHAR`,
  )
  const names = 't("at", kind, resource, id, detail, held, offered)'
  await withTables({ registry_findings: rows.map((row) => `FROM (${row}) ${names}`) }, async (ledger, engine) => {
    const known = await readFindings(ledger, engine)
    expect(known.size).toBe(found.length)
    for (const one of found) expect([...known]).toContain(findingLine(one))
    expect(known.has(findingLine(partOf<RecordFinding>({ ...found[0], id: 'i1d' })))).toBe(false)
  })
})

test('the latest text of a record and of an event counts, whichever file it is in', async () => {
  const step = (id: string, seconds: number, op: string, hash: string): string =>
    `SELECT '${id}' AS id, ${at(seconds)} AS "at", ${op}::VARCHAR AS op, '${hash}' AS hash, NULL::TIMESTAMPTZ AS superseded_at`
  const absorbed = (id: string, seconds: number, resource: string): string =>
    `SELECT '${resource}' AS resource, '${id}' AS id, ${at(seconds)} AS "at", 'absorbed' AS hash`
  const tables = {
    'history.issuers': [
      [step('a', 1, `'created'`, 'a1'), step('b', 1, `'created'`, 'b1'), step('c', 9, `'created'`, 'c9')].join(
        ' UNION ALL ',
      ),
      [step('a', 5, `'updated'`, 'a5'), step('b', 6, 'NULL', 'b6')].join(' UNION ALL '),
    ],
    absorbed: [
      [absorbed('a', 7, 'issuers'), absorbed('b', 7, 'issuers'), absorbed('c', 8, 'issuers')].join(' UNION ALL '),
    ],
  }
  await withTables(tables, async (ledger, engine) => {
    const held = (await readHeld(ledger, engine, ['issuers', 'products'])).get('issuers')
    const said = (id: string) => [held?.get(id)?.open, held?.get(id)?.hash, held?.get(id)?.at]
    // What was absorbed counts where it came after the step, and the record is there.
    expect([said('a'), said('b'), said('c')]).toEqual([
      [true, 'absorbed', 7e6],
      [false, 'b6', 6e6],
      [true, 'c9', 9e6],
    ])
    expect((await readLastEvents(ledger, engine)).size).toBe(0)
  })
})
