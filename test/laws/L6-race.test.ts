// @module-tag full
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import { publish } from '../../src/maintenance/publish/publish.ts'
import { s3At } from '../../src/maintenance/publish/s3.ts'
import { type Bucket, download, environmentOf, ownBucket } from '../helpers/buckets.ts'
import { deltaFiles, deltaRows, deltaVersion } from '../helpers/delta.ts'
import { test } from '../helpers/lake-test.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { grow, pulled } from '../helpers/mirrors.ts'
import { webTo } from '../helpers/s3.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

// `make test-s3-race` names a server of somebody else's and thirty publishers; here the stand-in and a few.
const given = process.env['PITLAKE_RACE_S3']
const publishers = given === undefined ? 3 : 30

async function bucket(): Promise<Bucket> {
  if (given === undefined) return await ownBucket()
  const key = { id: process.env['PITLAKE_RACE_ID'] ?? '', secret: process.env['PITLAKE_RACE_SECRET'] ?? '' }
  return { url: given, bucket: 'race', key, [Symbol.asyncDispose]: async () => undefined }
}

test(`${publishers} publishers of one lake at once: one commit a version and table, and the losers say so`, async ({
  root: folder,
}) => {
  await using there = await bucket()
  const text = `s3://${there.bucket}/run-${Date.now()}`
  const wait = async (ms: number): Promise<void> => await sleep(ms)
  const web = { ...webTo(there.url, environmentOf(there)), wait }
  const source = join(folder, 'lake')
  let ends: number[] = []
  for (const [round, commits] of [2, 1].entries()) {
    await grow(source, round * 2, commits)
    const copies = Array.from({ length: publishers }, (_, n) => join(folder, `copy-${round}-${n}`))
    for (const copy of copies) cpSync(source, copy, { recursive: true })
    const all = await Promise.allSettled(
      copies.map(
        async (root) => await publish({ root, catalogue, to: s3At(text, web), withLake: true }, rewriteDeps()),
      ),
    )
    ends = all.map((end) => (end.status === 'fulfilled' ? 0 : exitCode(end.reason)))
    expect(ends.filter((code) => code !== 0 && code !== 7)).toEqual([])
    expect(ends).toContain(0)
    const found = join(folder, `found-${round}`)
    await download(s3At(text, web), found)
    const points = join(found, 'points')
    expect((await deltaRows(points)).length).toBe((round === 0 ? 2 : 3) * 20)
    expect(deltaVersion(points)).toBe(round)
    expect(deltaFiles(points).size).toBeGreaterThan(0)
    const mirror = await pulled(join(folder, 'mirror'), found)
    expect(mirror).toMatchObject({ version: round === 0 ? 2 : 3 })
  }
  process.stderr.write(`${publishers} publishers: ${ends.filter((code) => code === 7).length} lost, none harmed\n`)
}, 600_000)
