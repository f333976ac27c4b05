import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import type { Desk } from '../../src/interfaces/server/session-manager.ts'
import type { Routes } from '../../src/interfaces/server/listen.ts'
import { pathsOf } from '../../src/interfaces/server/paths.ts'
import { scratch } from '../helpers/scratch.ts'
import { partOf } from '../helpers/part-of.ts'

const folder = scratch('paths')
beforeAll(() => {
  for (const ending of ['jsonl', 'arrows', 'parquet', 'csv', 'json']) writeFileSync(join(folder, `x.${ending}`), '')
})

/** What is told of the catalogue's metrics to whoever accepts this. */
async function told(accept: string | undefined, query = '', more: object = {}) {
  const facts = { lake: 'l', version: 1, digest: 'd', synthetic: true }
  const answer = { facts, sql: '', rows: 0, notes: [], ...more }
  // Cast: whatever is asked, this desk answers with the table above.
  const desk = partOf<Desk>({ turn: async <T>() => await Promise.resolve(answer as T) })
  const asked: Parameters<Routes[string]>[0] = {
    method: 'GET',
    query: new URLSearchParams(query),
    headers: accept === undefined ? {} : { accept },
    body: async () => await Promise.resolve(''),
    client: 'a',
    closed: new AbortController().signal,
  }
  return await pathsOf({ desk, scratch: folder, draw: () => 'x' })['/metrics']?.(asked)
}

const lines = 'application/x-ndjson'
const csv = 'text/csv'
const json = 'application/json'

test.each<[string | undefined, string]>([
  [undefined, lines],
  ['*/*', lines],
  ['application/*', lines],
  ['text/*', csv],
  ['text/html, text/csv', csv],
  ['text/csv;q=0.1, application/json;q=0.2', json],
  ['text/csv;q=0, application/json;q=0.001', json],
  ['application/json, text/csv', json],
  ['APPLICATION/JSON; charset=utf-8; q=1', json],
  ['text/csv;q=0, */*;q=0.1', lines],
])('who accepts %s gets %s', async (accept, type) => expect((await told(accept))?.type).toBe(type))

test('an exact media type wins over a wildcard in Accept, and an excluded one is refused', async () => {
  expect((await told('text/csv', 'format=json'))?.type).toBe(json)
  for (const accept of ['text/html', 'text/csv;q=0', 'text/csv;q=0.0, image/*'])
    await expect(told(accept)).rejects.toThrow(`got ${accept}; numbers for Prometheus`)
  await expect(told('*/*', 'format=csv&format=json')).rejects.toThrow('format: expected one value, got several')
})

test('response headers name the lake, the rows, the SQL and as many notes as fit', async () => {
  const note = { code: 'unknown-asset', subject: 'BTX é' } as const
  const headers = (await told('*/*', '', { sql: 'SELECT é', rows: 7, notes: [note] }))?.headers ?? {}
  expect(headers).toMatchObject({
    'pitlake-lake': 'l',
    'pitlake-version': '1',
    'pitlake-digest': 'd',
    'pitlake-rows': '7',
  })
  expect([headers['pitlake-synthetic'], headers['pitlake-sql']]).toEqual(['true', 'SELECT%20%C3%A9'])
  expect(decodeURIComponent(headers['pitlake-notes'] ?? '')).toContain('BTX é')
  expect(JSON.parse(decodeURIComponent(headers['pitlake-noted'] ?? ''))).toEqual([note])
  const long =
    (await told('*/*', '', { sql: 'x'.repeat(4001), notes: Array.from({ length: 300 }, () => note) }))?.headers ?? {}
  expect(Object.keys(long).filter((name) => /sql|note/.test(name))).toEqual([])
})

test.each(['/explain', '/when'])('a full disk under %s is one, as for an answer, and shows no path', async (path) => {
  const full = Object.assign(new Error(`ENOSPC: no space left on device, write '${folder}/x.csv'`), { code: 'ENOSPC' })
  const desk = partOf<Desk>({
    means: partOf<Desk['means']>({ folder }),
    turn: async () => await Promise.reject(full),
  })
  const asked: Parameters<Routes[string]>[0] = {
    method: 'GET',
    query: new URLSearchParams({ [path === '/when' ? 'table' : 'result']: 'YQ==' }),
    headers: {},
    body: async () => await Promise.resolve(''),
    client: 'a',
    closed: new AbortController().signal,
  }
  const answer = pathsOf({ desk, scratch: folder, draw: () => 'full' })[path]?.(asked)
  await expect(answer).rejects.toMatchObject({ kind: 'incomplete', message: expect.not.stringContaining(folder) })
})
