import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Agent } from '../helpers/agent.ts'
import { pitlake } from '../helpers/command.ts'
import { listening, sleep } from '../helpers/listening.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

/*
 * A server started with --as-of: whoever asks gets nothing that was known or done later, whatever a question names. The
 * lake was fetched on 2024-04-09, its points are knowable from January on, its registry from February.
 */
const limit = '2024-01-20T00:00:00Z'
const doors = new Map<string, Awaited<ReturnType<typeof listening>>>()
const agents = new Map<string, Agent>()
const { root: folder } = lakeOfFile(hundredFetchedDays)

beforeAll(async () => {
  for (const [name, day] of [
    ['early', '2024-01-05'],
    ['late', '2024-02-05'],
  ]) {
    const file = join(folder, '..', `${name}.csv`)
    writeFileSync(file, `t,asset,v\n${day},BTC,1\n`)
    const argv = [
      'import',
      file,
      '--as',
      name ?? '',
      '--asset',
      'asset',
      '--t',
      't',
      '--value',
      'v',
      '--interval',
      '24h',
    ]
    const { code } = await pitlake(folder, [...argv, '--data', folder])
    if (code !== 0) throw new Error(`import of ${name} ended with ${code}`)
  }
  doors.set('limited', await listening(folder, ['serve', '--as-of', limit]))
  doors.set('allowed', await listening(folder, ['serve', '--as-of', limit, '--allow', 'backfill,registry_backfill']))
  agents.set('free', await Agent.at(folder))
  agents.set('limited', await Agent.at(folder, '--as-of', limit))
  agents.set('allowed', await Agent.at(folder, '--allow', 'registry_backfill'))
})
afterAll(async () => {
  for (const door of doors.values()) await door.stop()
  for (const agent of agents.values()) await agent[Symbol.asyncDispose]()
})

/** Status and text of an answer over HTTP. */
async function get(door: string, path: string, params: Readonly<Record<string, string>>) {
  const answer = await fetch(`${doors.get(door)?.url}${path}?${new URLSearchParams(params).toString()}`)
  return { status: answer.status, text: await answer.text() }
}

const rowsOf = (text: string): unknown[] =>
  text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown)

test.each([
  ['backfill', 'rule', 'strict'],
  ['registry_backfill', 'true', 'false'],
])(
  '%s=%s behind --as-of is refused over HTTP, and answered if the server was started with --allow',
  async (name, late, usual) => {
    const sql = 'SELECT count(*) AS n FROM history.products'
    const refused = await get('limited', '/query', { sql, [name]: late })
    expect(refused.status).toBe(400)
    expect(refused.text).toMatch(new RegExp(`^${name}: expected ${usual}, got ${late}; .*--allow ${name}\n$`))
    const panel = { calendar: '2024-01-02,2024-01-05,1d', assets: 'BTC', metrics: 'price_usd', [name]: late }
    expect((await get('limited', '/panel', panel)).status).toBe(400)
    expect((await get('limited', '/query', { sql, [name]: usual })).status).toBe(200)
    expect((await get('allowed', '/query', { sql, [name]: late })).status).toBe(200)
  },
)

test('registry_backfill over MCP is refused, and answered if pitlake mcp was started with --allow', async () => {
  const asked = { sql: 'SELECT count(*) AS n FROM universe', as_of: limit, registry_backfill: true }
  for (const name of ['free', 'limited'])
    expect(await agents.get(name)?.refusal('query', asked)).toMatch(
      /^registry_backfill: expected false, got true; .*--allow/,
    )
  expect((await agents.get('allowed')?.one('query', asked))?.rows).toEqual([{ n: 20 }])
})

test('pitlake mcp --as-of refuses a later timestamp, and how the lake stands today', async () => {
  const late = await agents.get('limited')?.refusal('query', { sql: 'SELECT 1', as_of: '2024-02-01' })
  expect(late).toBe(`as_of: expected at most ${limit}, the limit of this server (--as-of), got 2024-02-01`)
  expect(await agents.get('limited')?.refusal('status', {})).toContain('expected the whole lake')
})

test('endpoints behind a limit lists a user metric once a point of it was knowable', async () => {
  const sql = "SELECT metric FROM endpoints WHERE source = 'imported' ORDER BY metric"
  expect(rowsOf((await get('limited', '/query', { sql })).text)).toEqual([{ metric: 'own/early' }])
  expect((await agents.get('free')?.one('query', { sql, as_of: '2024-02-10' }))?.rows).toEqual([
    { metric: 'own/early' },
    { metric: 'own/late' },
  ])
  const { text } = (await agents.get('limited')?.ask('metrics', { match: 'own/' })) ?? { text: '' }
  expect(text).toContain('own/early')
  expect(text).not.toContain('own/late')
})

test('lake_info and observed_at behind a limit say nothing of what the lake did later', async () => {
  const sql = 'SELECT version, committed_at, lake_version() AS v, lake_digest() AS d FROM lake_info'
  expect(rowsOf((await get('limited', '/query', { sql })).text)).toEqual([
    { version: null, committed_at: null, v: null, d: null },
  ])
  const answer = await agents.get('limited')?.one('query', { sql: 'SELECT 1', as_of: limit })
  expect(answer?.lake).toMatchObject({ version: null, digest: null })
  for (const view of ['points', 'components', 'price_usd', 'vintages']) {
    const observed = `SELECT count(*) AS n, count(observed_at) AS stored FROM ${view} WHERE observed_at > '${limit}' OR observed_at IS NULL`
    const [row] = rowsOf((await get('limited', '/query', { sql: observed })).text) as { stored: string }[]
    expect(String(row?.stored), view).toBe('0')
  }
  const [newest] = (await agents.get('free')?.one('query', { sql, as_of: '2030-01-01' }))?.rows ?? []
  expect(newest).toMatchObject({ version: expect.anything(), d: expect.stringMatching(/^[0-9a-f]{64}$/) })
})

test('a page written with --as-of has no timestamp of the lake after it', async () => {
  const out = join(folder, '..', 'site')
  const argv = ['serve', '--data', folder, '--export', out, '--as-of', limit, '--instants', '2']
  expect(await pitlake(folder, argv, {}, { sleep })).toMatchObject({ code: 0 })
  const texts = readdirSync(join(out, 'data')).map((name) => readFileSync(join(out, 'data', name), 'utf8'))
  const observed = texts.flatMap((text) => [...text.matchAll(/"observed_at":"([^"]+)"/g)].map(([, at = '']) => at))
  expect(observed.filter((at) => at > limit)).toEqual([])
  expect(texts.some((text) => text.includes('"observed_at":null'))).toBe(true)
})
