// @module-tag full
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { listening } from '../helpers/listening.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const { root: folder } = lakeOfFile(hundredFetchedDays)
let door: Awaited<ReturnType<typeof listening>>
beforeAll(async () => {
  door = await listening(folder, ['serve'])
})
afterAll(async () => {
  await door.stop()
})

async function explain(bytes: Buffer): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ result: bytes.toString('base64') })
  return await fetch(`${door.url}/explain`, { method: 'POST', headers, body })
}

test('L6: why a stamped result is another one now, over HTTP', async () => {
  const [query, file] = ['q.sql', 'stamped.parquet'].map((name) => join(folder, '..', name)) as [string, string]
  writeFileSync(query, "SELECT t, v FROM points WHERE metric = 'indicators/one' ORDER BY asset, t")
  expect(await pitlake(folder, ['stamp', query, '--out', file, '--data', folder])).toMatchObject({ code: 0 })
  const told: unknown = await (await explain(readFileSync(file))).json()
  expect(told).toMatchObject({ verdict: 'same', versions: 0, commit: null })
  expect(JSON.stringify(told)).not.toContain(tmpdir())
})

test('a file that this lake did not stamp is refused without its path', async () => {
  const other = join(folder, '..', 'other.parquet')
  expect(await pitlake(folder, ['sql', 'SELECT 1 AS a', '--data', folder, '--out', other])).toMatchObject({ code: 0 })
  for (const bytes of [Buffer.from('no Parquet'), readFileSync(other)]) {
    const refused = await explain(bytes)
    const words = await refused.text()
    expect([refused.status, words.includes(tmpdir()), words.includes(folder)]).toEqual([400, false, false])
    expect(words).toContain('the result')
  }
})
