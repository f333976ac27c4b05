import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { gatheredLog, gatherLogs, openRunLog, readLogs } from '../../src/lake/ledger/run-facts.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { test } from '../helpers/lake-test.ts'

const before = Date.UTC(2026, 0, 20, 12) * 1000

test('logs that began before an instant go into that of their day; one that began at it stays', async ({ root }) => {
  mkdirSync(inLake(root, places.runs), { recursive: true })
  const put = (name: string, at: number): void =>
    writeFileSync(inLake(root, `${places.runs}/${name}.log`), `{"at":"${new Date(at / 1000).toISOString()}"}\n`)
  put('later', before + 1000)
  put('at', before)
  put('b', before - 1000)
  put('a', before - 1000)
  expect((await readLogs(root)).map(({ path }) => path)).toEqual(
    ['a', 'b', 'at', 'later'].map((name) => `runs/${name}.log`),
  )
  await gatherLogs(root, realDisk, before)
  expect(readdirSync(inLake(root, places.runs)).toSorted()).toEqual(['2026-01-20.log.gz', 'at.log', 'later.log'])
})

/** Writes the log of a run of so many requests. */
async function logRequests(root: string, run: string, requests: number): Promise<void> {
  await using log = openRunLog(root, run, { now: () => before / 1000 - 9000, secrets: [] })
  for (let n = 0; n < requests; n++) {
    const url = `https://api.example/v1/metrics/supply/current?a=A${n}&i=24h&s=1768780800&u=1768867200&c=native`
    const id = `20260120t093000000z-${run}-${n}`
    log.note('request', { id, series: `supply/current|A${n}|24h|native|||`, url })
    log.note('answer', { id, attempt: 1, outcome: 'body', status: 200, bytes: 90 + (n % 40), seconds: (n % 97) / 100 })
  }
}

const linesOf = async (root: string, name: string): Promise<string[]> =>
  ((await gatheredLog(inLake(root, `${places.runs}/${name}`))) ?? '').split('\n').slice(0, -1)

test('the log of a run of many requests is compressed at its end, to 80 bytes a request', async ({ root }) => {
  const requests = 2400
  await logRequests(root, 'day', requests)
  expect(readdirSync(inLake(root, places.runs))).toEqual(['day.log.gz'])
  const path = inLake(root, `${places.runs}/day.log.gz`)
  expect(statSync(path).size / requests).toBeLessThan(80)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const lines = await linesOf(root, 'day.log.gz')
  expect(lines).toHaveLength(2 * requests)
  expect(lines.join('\n').length / requests).toBeGreaterThan(350)
})

test('a run that opens its log twice has both parts in one compressed log', async ({ root }) => {
  await logRequests(root, 'r', 300)
  await logRequests(root, 'r', 200)
  expect(readdirSync(inLake(root, places.runs))).toEqual(['r.log.gz'])
  expect(await linesOf(root, 'r.log.gz')).toHaveLength(2 * 500)
})

test('the log of a run of few requests stays plain text', async ({ root }) => {
  await logRequests(root, 'r', 20)
  expect(readdirSync(inLake(root, places.runs))).toEqual(['r.log'])
})

test('compressed and plain logs of a day are gathered, nothing twice, and a damaged one stays', async ({ root }) => {
  await logRequests(root, 'long', 300)
  await logRequests(root, 'short', 20)
  await logRequests(root, 'torn', 300)
  const runs = inLake(root, places.runs)
  const torn = join(runs, 'torn.log.gz')
  truncateSync(torn, statSync(torn).size - 20)
  writeFileSync(join(runs, '.tmp-killed.log.gz'), readFileSync(join(runs, 'long.log.gz')))
  // Killed between the two steps of compressing.
  writeFileSync(join(runs, 'long.log'), gunzipSync(readFileSync(join(runs, 'long.log.gz'))))
  expect((await readLogs(root)).map(({ path }) => path)).toEqual(
    ['long.log', 'long.log.gz', 'short.log', 'torn.log.gz'].map((name) => `${places.runs}/${name}`),
  )
  await gatherLogs(root, realDisk, before)
  expect(readdirSync(runs).toSorted()).toEqual(['.tmp-killed.log.gz', '2026-01-20.log.gz', 'torn.log.gz'])
  expect(await linesOf(root, '2026-01-20.log.gz')).toHaveLength(2 * 320)
})

test('a log line has no secret, whatever it reports', async ({ root }) => {
  const secrets = ['s3cret-of-the-lake']
  {
    await using log = openRunLog(root, 'told', { now: () => before / 1000, secrets })
    log.note('asked', { url: 'https://api.example/?z=s3cret-of-the-lake', words: ['"s3cret-of-the-lake"'] })
  }
  const told = {
    at: '2026-01-20T12:00:00.000Z',
    event: 'asked',
    url: 'https://api.example/?z=[key]',
    words: ['"[key]"'],
  }
  expect(JSON.parse(readFileSync(inLake(root, `${places.runs}/told.log`), 'utf8'))).toEqual(told)
})
