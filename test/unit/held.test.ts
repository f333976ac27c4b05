import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { commit } from '../../src/ledger/commit.ts'
import type { Stamp, Violation } from '../../src/ledger/entry.ts'
import { heldSoft, heldStamps, heldViolations } from '../../src/ledger/held.ts'
import { inLake, places, quarantineFile, runLog } from '../../src/store/layout.ts'
import { Ledger, ledgerBytes } from '../../src/ledger/ledger.ts'
import { commitDeps, coverageRow, inFolder, seriesRow } from '../helpers/lakes.ts'

test('violations, stamps and soft facts come back as they were committed', () =>
  inFolder(async (root) => {
    const ledger = await Ledger.open(root)
    const at = { stored_at: 1, offered_at: 2, request: 'r-1' }
    const violation: Violation = {
      series: seriesRow(0).id,
      t: 86_400,
      kind: 'changed',
      stored: '-0.0',
      offered: '5e-324',
      ...at,
    }
    const stamp: Stamp = { id: 's', version: 1, digest: 'd', query_digest: 'q', path: null, at: 7, detail: { rows: 3 } }
    await commit(
      ledger,
      {
        job: 'fetch',
        run: 'a',
        provider: { metrics: 'sandbox:1', synthetic: true },
        series: [seriesRow(0), seriesRow(1)],
        coverage: [coverageRow(0, 0, 86_400)],
        violations: [violation],
        stamps: [stamp],
        soft: { polled: '2024-03-01' },
      },
      commitDeps(),
    )
    expect(heldViolations(ledger)).toEqual([expect.objectContaining({ ...violation, added_version: 1 })])
    expect(heldViolations(ledger, seriesRow(1).id)).toEqual([])
    expect(heldStamps(ledger)).toEqual([expect.objectContaining(stamp)])
    expect(heldSoft(ledger, 'polled')?.value).toBe('2024-03-01')
    expect(heldSoft(ledger, 'never')).toBeUndefined()
    expect(ledgerBytes(root)).toBe(statSync(inLake(root, places.ledger)).size)
    ledger.close()
  }))

test('a lake that is not there takes no bytes', () =>
  inFolder(async (root) => expect(ledgerBytes(inLake(root, 'nowhere'))).toBe(0)))

test('quarantined bodies and run logs have their own folders', () => {
  expect(quarantineFile('run-1', '.json')).toMatch(/^quarantine\/[^/]+\.json/)
  expect(runLog('run-1')).toMatch(/^runs\/[^/]+\.log/)
})
