import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { gatherLogs, openRunLog, readLogs } from '../../src/lake/ledger/run-facts.ts'
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
  expect(readdirSync(inLake(root, places.runs)).toSorted()).toEqual(['2026-01-20.log', 'at.log', 'later.log'])
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
