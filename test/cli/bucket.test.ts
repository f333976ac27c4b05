import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { type Bucket, environmentOf, motoBucket, ownBucket } from '../helpers/buckets.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { grow } from '../helpers/mirrors.ts'
import { sample } from '../helpers/tiers.ts'
import { scratch } from '../helpers/scratch.ts'

const folder = scratch('bucket')
const source = join(folder, 'lake')
beforeAll(async () => {
  await grow(source, 0, 2)
  writeFileSync(join(folder, 'q.sql'), 'SELECT asset, sum(v) AS v FROM points GROUP BY ALL ORDER BY ALL')
  await pitlake(folder, ['stamp', 'q.sql', '--out', 'r.parquet', '--data', source])
})

const json = (ended: Ended): unknown => (ended.code === 0 ? JSON.parse(ended.out) : ended)

const buckets = [
  ['the stand-in', ownBucket],
  ['moto', motoBucket],
] as const

test.for(sample(buckets, 1))(
  'a lake goes through a bucket of %s, and its stamped result replays',
  async ([name, open], context) => {
    await using there = await open(context)
    const env = environmentOf(there)
    const to = `s3://${there.bucket}/team/a`
    const mirror = join(folder, name)
    const run = async (...argv: string[]): Promise<Ended> => await pitlake(folder, argv, env)
    expect(json(await run('publish', to, '--lake', '--json', '--data', source))).toMatchObject({
      destination: to,
      version: 2,
      lake_copy: { version: 2 },
    })
    expect(json(await run('pull', to, '--json', '--data', mirror))).toMatchObject({
      source: `${to}/lake`,
      version: 2,
      stamps: 1,
    })
    expect(json(await run('status', '--json', '--data', mirror))).toMatchObject({ mirror_of: `${to}/lake` })
    expect(await run('replay', 'r.parquet', '--data', mirror)).toMatchObject({ code: 0 })
    expect(json(await run('publish', to, '--lake', '--json', '--data', source))).toMatchObject({
      tables: {},
      lake_copy: { files: 0 },
    })
    expect(json(await run('pull', `${to}/lake`, '--json', '--data', mirror))).toMatchObject({
      version: 2,
      before: 2,
      files: 0,
    })
  },
)

test('a broken bucket ends in one line with the next step, its exit code and no key', async () => {
  await using there: Bucket = await ownBucket()
  const env = environmentOf(there)
  const { secret } = there.key
  const cases: readonly [string, Record<string, string>, number, string][] = [
    ['s3://other/x', {}, 2, 'aws s3 mb s3://other'],
    ['s3://lake/x', { AWS_SECRET_ACCESS_KEY: `${secret}-not` }, 3, 'SignatureDoesNotMatch'],
    ['s3://lake/x', { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }, 2, 'set AWS_ACCESS_KEY_ID'],
    ['s3://lake/x', { AWS_ENDPOINT_URL: 'http://example.org' }, 2, 'https (http only to loopback)'],
    ['s3://lake/x', { AWS_PROFILE: 'nobody' }, 2, 'AWS_PROFILE nobody'],
    [`s3://me:${secret}@lake/x`, {}, 2, 's3://bucket/prefix'],
    ['ftp://lake/x', {}, 2, 's3://bucket/prefix'],
  ]
  for (const [n, [to, changes, code, words]] of cases.entries()) {
    const argv = n % 2 === 0 ? ['publish', to, '--data', source] : ['pull', to, '--data', join(folder, 'none')]
    const ended = await pitlake(folder, argv, { ...env, ...changes })
    expect([argv[0], ended.code, ended.message]).toEqual([argv[0], code, expect.stringContaining(words)])
    const own = changes['AWS_SECRET_ACCESS_KEY'] || (to.includes('@') && secret) || 'no key at all'
    expect(ended.message).not.toMatch(new RegExp(`\\n|${own}`))
  }
  const skewed = { now: () => Date.now() - 3_600_000 }
  expect(await pitlake(folder, ['pull', 's3://lake/empty', '--data', join(folder, 'none')], env, skewed)).toMatchObject(
    { code: 2, message: expect.stringContaining('no lake in s3://lake/empty') as string },
  )
})
