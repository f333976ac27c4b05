// @module-tag alone
import { expect, test, vi } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import type * as Columns from '../../src/lake/ledger/columns.ts'
import { requestColumns } from '../../src/lake/ledger/columns.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { commitDeps, inFolder } from '../helpers/lakes.ts'
import { makeViews, withViews } from '../helpers/views.ts'

// The declaration of one table gains a column. Nothing else knows of it.
vi.mock('../../src/lake/ledger/columns.ts', async (load) => {
  const real = await load<typeof Columns>()
  const { maybe, text } = await import('../../src/base/value-checks.ts')
  const added = { check: maybe(text), stored: 'TEXT', shown: 'VARCHAR', about: 'address that was asked' } as const
  const columns = { ...real.requestColumns, source_url: added }
  return { ...real, requestColumns: columns, ledgerTables: { requests: { ...real.ledgerTables.requests, columns } } }
})

const request = {
  id: 'r-1',
  run: 'r',
  api: 'metrics' as const,
  path: 'supply/current_pit',
  query: { a: 'BTC' },
  series: null,
  since: null,
  until: null,
  status: 200,
  outcome: 'ok',
  points: 3,
  bytes: 10,
  credits: 1,
  attempts: 1,
  asked_at: 1_700_000_000_000_000,
  seconds: 0.5,
  detail: null,
}
const draft = { job: 'fetch', run: 'r', provider: { metrics: 'sandbox:1', synthetic: true } }

test('a column that is added to the declaration of `requests` is in journal, index and view', async () => {
  expect(Object.keys(requestColumns)).toContain('source_url')
  await inFolder(async (root) => {
    const requests = [
      { ...request, source_url: 'https://provider.example/v1' },
      { ...request, id: 'r-2', provider_date: 1_700_000_000.5 },
    ]
    {
      using ledger = await Ledger.open(root)
      await commit(ledger, { ...draft, state: { n: 1 }, requests }, commitDeps())
      const rows = ledger.statement('SELECT id, source_url, provider_date FROM requests ORDER BY id').all()
      expect(rows.map((row) => ({ ...row }))).toEqual([
        { id: 'r-1', source_url: 'https://provider.example/v1', provider_date: null },
        { id: 'r-2', source_url: null, provider_date: 1_700_000_000.5 },
      ])
    }
    const { entry } = await readEntry(root, 1)
    expect(entry.requests).toEqual(requests)
    const wrong = { ...request, id: 'r-3', source_url: 7 }
    using again = await Ledger.open(root)
    const refused = { ...draft, state: { n: 2 }, requests: [wrong] }
    await expect(commit(again, refused, commitDeps())).rejects.toThrow(/source_url: no text/)
    await makeViews(root)
    await withViews(root, async (engine) => {
      expect(await engine.rows('SELECT id, source_url FROM requests ORDER BY id')).toEqual([
        { id: 'r-1', source_url: 'https://provider.example/v1' },
        { id: 'r-2', source_url: null },
      ])
      const [comment] = await engine.rows(
        `SELECT comment FROM duckdb_columns() WHERE table_name = 'requests' AND column_name = 'source_url'`,
      )
      expect(comment).toEqual({ comment: 'address that was asked' })
    })
  })
})
