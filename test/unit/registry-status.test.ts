import { expect } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { passingDraft } from '../../src/sources/registry/staging.ts'
import { registryStatus } from '../../src/sources/registry/status.ts'
import { commitDeps, draftOf } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const polled = Date.UTC(2026, 0, 20, 12)

test('limits are shown as far as answers gave them, and a refusal of snapshots until it is over', async ({
  root,
  ledger,
}) => {
  const limits = { 'x-ratelimit-limit': '600;w=60', 'x-ratelimit-remaining': 'many', 'x-quota-daily-limit': '0' }
  const passing = passingDraft({ polled, snapshotLimit: polled + 5000, limits, notModified: 3 })
  await commit(ledger, { ...draftOf(root, 0), passing }, commitDeps())
  const at = async (ms: number) => {
    const { cursor_age, limits: told, feed_at, not_modified } = await registryStatus(ledger, catalogue, ms, null)
    return { cursor_age, snapshots_from: told.snapshots_from, told, feed_at, not_modified }
  }
  expect(await at(polled + 5000)).toMatchObject({ cursor_age: 5, snapshots_from: null })
  // Of a clock that was set back nothing is told but that it was just now.
  expect(await at(polled - 60_000)).toEqual({
    cursor_age: 0,
    snapshots_from: '2026-01-20T12:00:05.000Z',
    told: {
      per_minute: 600,
      per_minute_remaining: null,
      daily: 0,
      daily_remaining: null,
      snapshots_from: '2026-01-20T12:00:05.000Z',
    },
    feed_at: '2026-01-20T12:00:00.000Z',
    not_modified: 3,
  })
})
