import { expect } from 'vitest'
import { sha256File } from '../../src/lake/ledger/commit.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { openQuery } from '../../src/query/lake.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { dump } from './lakes/drafts.ts'
import { answers } from './points-at.ts'

/** Every live file is there byte for byte, the index is the source's, and the views give its answers. */
export async function expectMirror(mirror: string, source: string): Promise<void> {
  using own = await Ledger.open(mirror)
  using other = await Ledger.open(source)
  expect(dump(own)).toEqual(dump(other))
  using rebuilt = await Ledger.inMemory(mirror)
  expect(dump(rebuilt)).toEqual(dump(other))
  for (const { path, sha256 } of liveFiles(other)) expect(await sha256File(inLake(mirror, path))).toBe(sha256)
  expect(await answers(own, null)).toBe(await answers(other, null))
  using session = await openQuery(mirror)
  const [row] = await session.rows('SELECT count(*) AS n FROM points')
  expect(Number(row?.['n'])).toBe(heldPoints(other))
}

function heldPoints(ledger: Ledger): number {
  return liveFiles(ledger, { table: 'points' }).reduce((sum, { rows }) => sum + rows, 0)
}
