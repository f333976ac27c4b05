import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fetchKey, withBench } from '../helpers/fetching.ts'
import { type Answers, withProvider } from '../helpers/provider.ts'

const now = Date.UTC(2026, 2, 4, 12) / 1000
const since = now - 30 * 86_400

/** Every file below, and whether it holds the key in one of the forms that it could take. */
function search(root: string): { files: string[]; found: string[] } {
  const forms = [fetchKey, encodeURIComponent(fetchKey), Buffer.from(fetchKey).toString('base64').slice(0, -3)]
  const utf16 = Buffer.from(fetchKey, 'utf16le')
  const all = readdirSync(root, { recursive: true, withFileTypes: true }).filter((item) => item.isFile())
  const files = all.map((item) => join(item.parentPath, item.name))
  const found = files.filter((file) => {
    const bytes = readFileSync(file)
    return bytes.includes(utf16) || forms.some((form) => bytes.includes(form))
  })
  return { files: files.map((file) => file.slice(root.length + 1)), found }
}

/** A provider that repeats the key in every way that it can. */
const echoes: Answers = (path) => {
  if (path === 'assets') return [{ id: 'BTC', note: 'plain' }]
  if (path.includes('height')) return { status: 400, text: `{"error": "bad request with x-api-key: ${fetchKey}"}` }
  if (path.includes('count')) return { status: 200, text: `<html>key ${fetchKey} ?api_key=${fetchKey}</html>` }
  if (path.includes('supply')) return { status: 403, text: `not for ${fetchKey}` }
  return { status: 500, text: `crash with ${encodeURIComponent(fetchKey)} and ${JSON.stringify({ key: fetchKey })}` }
}

test('no key is in any byte that is written, whatever the provider echoes', async () =>
  withProvider(now, async (own) => {
    own.answer(echoes)
    const told: string[] = []
    const deps = { detailedLog: true, onEvent: (event: object) => void told.push(JSON.stringify(event)) }
    await own.fetch({ assets: ['BTC'], paths: ['blockchain/*', 'supply/*', 'addresses/*'], since }, { deps })
    const { files, found } = search(own.root)
    expect(found).toEqual([])
    for (const place of [
      /^quarantine\/.*body$/,
      /^quarantine\/.*json$/,
      /^runs\/.*log$/,
      /^runs\/.*jsonl$/,
      /^journal\//,
    ])
      expect(files).toContainEqual(expect.stringMatching(place))
    expect(told.filter((event) => event.includes(fetchKey))).toEqual([])
    expect(own.seen.filter((url) => url.includes(fetchKey))).toEqual([])
  }))

test('the log of a run tells every request, answer and commit as lines of JSON', async () =>
  withBench(now, async (bench) => {
    bench.faults('status-503:each,first=1,share=0.3', 'poison-nan@blockchain/block_height_pit')
    const done = await bench.fetch({ assets: ['BTC'], paths: ['blockchain/*', 'supply/*'], since })
    const [name = ''] = readdirSync(join(bench.root, 'runs')).filter((file) => file.endsWith('.log'))
    const lines = readFileSync(join(bench.root, 'runs', name), 'utf8')
      .trimEnd()
      .split('\n')
    const events = lines.map((line) => JSON.parse(line) as { at: string; event: string; attempt?: number })
    const count = (event: string): number => events.filter((line) => line.event === event).length
    expect(events[0]).toMatchObject({ event: 'planned', requests: expect.any(Number) as number })
    expect(count('answer')).toBe(done.requests)
    expect(events.some(({ attempt }) => attempt === 2)).toBe(true)
    expect(count('request')).toBeLessThan(count('answer'))
    expect(count('commit')).toBeGreaterThanOrEqual(1)
    expect(count('sent') + count('waiting')).toBe(0)
    expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).toSorted())
  }))
