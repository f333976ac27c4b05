import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
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

test('the gathered log of a day takes at most 80 bytes a request, a fifth of what was written', async ({ root }) => {
  const lines = 2400
  {
    await using log = openRunLog(root, 'day', { now: () => before / 1000 - 9000, secrets: [] })
    for (let n = 0; n < lines; n++) {
      const url = `https://api.example/v1/metrics/supply/current?a=A${n}&i=24h&s=1768780800&u=1768867200&c=native`
      const id = `20260120t093000000z-4711-${n}`
      log.note('request', { id, series: `supply/current|A${n}|24h|native|||`, url })
      log.note('answer', {
        id,
        attempt: 1,
        outcome: 'body',
        status: 200,
        bytes: 90 + (n % 40),
        seconds: (n % 97) / 100,
      })
    }
  }
  const written = statSync(inLake(root, `${places.runs}/day.log`)).size
  await gatherLogs(root, realDisk, before)
  const path = inLake(root, `${places.runs}/2026-01-20.log.gz`)
  expect(written / lines).toBeGreaterThan(350)
  expect(statSync(path).size / lines).toBeLessThan(80)
  expect((await gatheredLog(path))?.split('\n')).toHaveLength(2 * lines + 1)
})

test('no secret is in a line of a log, whatever it tells', async ({ root }) => {
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
