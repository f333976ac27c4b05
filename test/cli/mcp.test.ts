// @module-tag full
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Agent, type AgentAnswer } from '../helpers/agent.ts'
import { pitlake } from '../helpers/command.ts'
import { alive } from '../helpers/processes.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const asOf = '2024-03-01'

const { root: folder } = lakeOfFile(hundredFetchedDays)
let agent: Agent
beforeAll(async () => {
  // Far beyond what a test may take: what is not cancelled is not mistaken for what ended in time.
  agent = await Agent.at(folder, '--timeout', '1h')
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
})

/** The rows of the command line's own answer. */
async function typed(...argv: readonly string[]): Promise<unknown[]> {
  const { out } = await pitlake(folder, [...argv, '--data', folder, '--format', 'json', '--out', `${folder}.json`])
  expect(out).toBe('')
  return JSON.parse(readFileSync(`${folder}.json`, 'utf8')) as unknown[]
}

describe('what an agent finds', () => {
  test('an agent finds the pages and the tools, each with an instant if it returns data', async () => {
    const { tools } = await agent.client.listTools()
    const needs = tools.map(({ name, inputSchema: { required = [] } }) => `${name}: ${required.join(' ')}`)
    expect(needs).toEqual([
      'metrics: ',
      'describe: name as_of',
      'query: sql as_of',
      'panel: metrics',
      'universe: ts',
      'lookahead: sql',
      'status: ',
    ])
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true)
    expect(agent.client.getInstructions()).toContain('as_of')
    const { resources } = await agent.client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual(
      expect.arrayContaining([
        'pitlake://docs/how-to/cookbook',
        'pitlake://docs/reference/joins',
        'pitlake://docs/explanation/concepts',
      ]),
    )
    const { contents } = await agent.client.readResource({ uri: 'pitlake://docs/how-to/cookbook' })
    expect(contents[0]).toMatchObject({
      mimeType: 'text/markdown',
      text: expect.stringMatching(/^# .*\n[\s\S]*pit_join/),
    })
  })

  test('a query as known at its instant: the rows of the command line, with version, digest and SQL', async () => {
    const sql = `SELECT metric, asset, max(t) AS last, count(*) AS n, sum(v) AS v FROM points GROUP BY ALL ORDER BY ALL`
    const answer = await agent.one('query', { sql, as_of: asOf })
    expect(answer).toMatchObject({ as_of: asOf, row_count: 4, cursor: null, notes: [] })
    expect(answer).not.toHaveProperty('sql')
    expect(await agent.one('query', { sql, as_of: asOf, show_sql: true })).toEqual({ ...answer, sql })
    expect(answer.rows).toEqual(await typed('sql', '--as-of', asOf, sql))
    expect(answer.rows[0]).toMatchObject({ last: '2024-02-28T00:00:00.000000Z', n: 59 })
    expect(answer.columns.map(({ name }) => name)).toEqual(['metric', 'asset', 'last', 'n', 'v'])
    const [lake] = await typed('sql', 'SELECT lake, version, lake_digest() AS digest FROM lake_info')
    expect(answer.lake).toEqual({ ...(lake as object), synthetic: false })
    const later = await agent.one('query', { sql, as_of: '2024-03-02T00:10:00Z' })
    expect(later.rows[0]).toMatchObject({ n: 61 })
  })

  test('panel, universe, metrics, describe, lookahead, status', async () => {
    const calendar = { since: '2024-01-02', until: '2024-01-09', step: '12h' }
    const asked = { calendar, assets: ['BTC', 'ETH'], metrics: ['supply/current_pit', 'indicators/one'] }
    const panel = await agent.one('panel', { ...asked, show_sql: true })
    const grid = ['--calendar', '2024-01-02,2024-01-09,12h', '--assets', 'BTC,ETH']
    expect(panel.rows).toEqual(await typed('panel', ...grid, '--metrics', 'supply/current_pit,indicators/one'))
    expect(panel.rows).toHaveLength(28)
    expect(panel.sql).toMatch(/calendar\('2024-01-02'[\s\S]*pit_long/)
    const { rows } = await agent.one('universe', { ts: asOf })
    expect(rows).toEqual(await typed('sql', '--as-of', asOf, 'SELECT * FROM universe ORDER BY product_id'))
    const metrics = await agent.one('metrics', { match: 'one' })
    expect(metrics.rows.map(({ metric }) => metric)).toContain('indicators/one')
    expect(await agent.one('describe', { name: 'supply/current_pit', as_of: '2024-01-11' })).toMatchObject({
      endpoint: { metric: 'supply/current_pit', default_interval: '24h' },
      rows: [
        { asset: 'BTC', points: 9, last_t: '2024-01-09T00:00:00.000000Z' },
        { asset: 'ETH', points: 9 },
      ],
    })
    const view = await agent.one('describe', { name: 'history.products', as_of: asOf })
    expect(view.rows.map(({ name }) => name)).toEqual(expect.arrayContaining(['id', 'valid_from', 'valid_to']))
    const leak = { sql: 'SELECT t AS ts, v FROM points', cutoffs: 3 }
    const proof = await agent.one('lookahead', leak)
    expect(proof).toMatchObject({ verdict: 'leak', lake: { version: 2 } })
    expect(proof).not.toHaveProperty('sql')
    expect(await agent.one('lookahead', { ...leak, show_sql: true })).toMatchObject({ sql: leak.sql })
    const wide = `SELECT t AS ts, repeat(md5(CAST(v AS VARCHAR)), 200) AS x, v FROM points`
    expect(await agent.one('lookahead', { ...leak, sql: wide })).toMatchObject({
      verdict: 'leak',
      left_out: { differences: expect.any(Number) },
    })
    expect(await agent.one('status', {})).toMatchObject({
      check: expect.stringMatching(/^stale: /),
      points: 400,
      lake: { version: 2 },
    })
  })
})

describe('an instant is mandatory', () => {
  test.each([
    ['query', { sql: 'SELECT 1' }, /as_of/],
    ['query', { sql: 'SELECT 1', as_of: '' }, /as_of: expected an instant/],
    ['query', { sql: 'SELECT 1', as_of: 'infinity' }, /as_of: expected an instant/],
    ['query', { sql: 'SELECT 1', as_of: null }, /as_of/],
    ['describe', { name: 'points' }, /as_of/],
    ['universe', {}, /ts/],
    ['panel', { metrics: ['supply/current_pit'], decisions: [{ asset: 'BTC', ts: null }] }, /decisions.0.ts/],
    ['panel', { metrics: ['supply/current_pit'], decisions: [] }, /decisions/],
  ])('%s %j', async (name, given, words) => expect(await agent.refusal(name, given)).toMatch(words))
})

describe('one SELECT over the views, and nothing else', () => {
  test.each([
    ['PRAGMA database_list', /PRAGMA/],
    ['EXPLAIN ANALYZE SELECT 1', /one SELECT, got EXPLAIN/],
    ["SELECT repeat('x', 5000000) AS big", /a row of 5000000 bytes is longer than the 20000 of a page/],
  ])('%s', async (sql, words) => expect(await agent.refusal('query', { sql, as_of: asOf })).toMatch(words))

  test.each([
    ['universe', { ts: asOf, condition: 'true); SELECT 1 WHERE (true' }],
    ['universe', { ts: asOf, condition: 'true) UNION ALL SELECT * FROM universe WHERE (true' }],
    ['universe', { ts: asOf, condition: "EXISTS (SELECT 1 FROM read_text('/etc/hostname'))" }],
    ['panel', { universe: "name IN (SELECT filename FROM read_text('/etc/hostname'))" }],
    ['panel', { universe: 'true); SELECT 1 WHERE (true' }],
  ])('a condition of %s: %j', async (name, given) => {
    const calendar = { since: '2024-03-01', until: '2024-03-02', step: '1d' }
    const whole = name === 'panel' ? { calendar, metrics: ['supply/current_pit'], ...given } : given
    expect(await agent.refusal(name, whole)).toMatch(/expected one condition, got true|got read_text/)
  })

  test('a question about the lookahead of a query is no way round', async () => {
    for (const sql of ["SELECT * FROM read_text('/etc/hostname')", 'SELECT 1; SELECT 2'])
      expect(await agent.refusal('lookahead', { sql })).toMatch(/got (?:several statements|read_text)/)
  })
})

describe('pages', () => {
  const sql = 'SELECT metric, asset, t, v FROM points ORDER BY metric, asset, t'
  const question = { sql, as_of: '2024-04-09T01:00:00Z', rows: 99 }

  test('pages return all rows once and in order; a cap is exact, and no page follows the last row', async () => {
    const rows: unknown[] = []
    const counts: number[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: AgentAnswer = await agent.one('query', cursor === '' ? question : { ...question, cursor })
      counts.push(page.row_count)
      rows.push(...page.rows)
      ;({ cursor } = page)
    }
    expect(counts).toEqual([99, 99, 99, 99])
    expect(rows).toEqual(await typed('sql', '--as-of', question.as_of, sql))
    const full = await agent.one('query', { ...question, rows: 2000 })
    expect([full.row_count > 150, full.row_count < 396, full.rows]).toEqual([true, true, rows.slice(0, full.row_count)])
    const few = `SELECT t, v FROM points WHERE asset = 'ETH' ORDER BY metric, t`
    expect(await agent.one('query', { ...question, sql: few, rows: 198 })).toMatchObject({
      row_count: 198,
      cursor: null,
    })
    expect(await agent.one('query', { ...question, sql: few, rows: 197 })).toMatchObject({
      row_count: 197,
      cursor: expect.any(String),
    })
    expect(await agent.refusal('query', { ...question, rows: 2001 })).toContain('rows')
    expect(await agent.refusal('query', { ...question, rows: 0 })).toContain('rows')
  })

  test('long rows make short pages, and each page reports how many rows it has', async () => {
    const wide = { sql: "SELECT i, repeat('x', 5000) AS x FROM range(9) AS r(i)", as_of: asOf }
    const first = await agent.one('query', wide)
    expect([first.row_count, typeof first.cursor]).toEqual([3, 'string'])
    const next = await agent.one('query', { ...wide, cursor: first.cursor })
    expect(next.rows.map(({ i }) => i)).toEqual([3, 4, 5])
    const sql = `SELECT repeat('"', 9000) AS x`
    expect(await agent.refusal('query', { sql, as_of: asOf })).toMatch(
      /expected rows of at most \d+ bytes, got one of 18010/,
    )
    const names = `SELECT ${Array.from({ length: 400 }, (_, n) => `${n} AS a_column_of_many_${n}`).join(', ')}`
    expect(await agent.refusal('query', { sql: names, as_of: asOf })).toMatch(/the answer: .*; name fewer columns/)
  })

  test('a cursor of a different question, a used one and an invented one are refused', async () => {
    const { cursor } = await agent.one('query', question)
    expect(await agent.refusal('query', { ...question, sql: 'SELECT 1', cursor })).toMatch(
      /the question that it came with/,
    )
    expect(await agent.refusal('query', { ...question, as_of: asOf, cursor })).toMatch(/the question that it came with/)
    expect(await agent.refusal('universe', { ts: asOf, cursor })).toMatch(/the question that it came with/)
    expect(await agent.one('query', { ...question, cursor })).toMatchObject({ row_count: 99 })
    expect(await agent.refusal('query', { ...question, cursor })).toMatch(
      /over or unknown; send the query again without a cursor/,
    )
    expect(await agent.refusal('query', { ...question, cursor: 'mine.2' })).toMatch(/over or unknown/)
  })

  test('answers that no agent continues are dropped, the oldest first', async () => {
    const cursors: (string | null)[] = []
    for (let n = 0; n < 10; n++) cursors.push((await agent.one('query', { ...question, rows: n + 1 })).cursor)
    const goesOn = async (n: number): Promise<boolean> =>
      !(await agent.ask('query', { ...question, rows: n + 1, cursor: cursors[n] })).refused
    expect([await goesOn(0), await goesOn(1), await goesOn(2), await goesOn(9)]).toEqual([false, false, true, true])
  })
})

test('after a commit the next page still reads the old version, and a new question the new one', async () => {
  using rootFolder = temporaryFolder('mcp')
  const root = rootFolder.path
  const day = (n: number): string => new Date(Date.UTC(2024, 0, n)).toISOString()
  const points = (from: number, count: number): PointRow[] =>
    Array.from({ length: count }, (_, n) => {
      const t = day(from + n)
      const available_at = day(from + n + 1)
      return {
        metric: 'supply/current_pit',
        asset: 'BTC',
        interval: '24h',
        currency: 'native',
        t,
        available_at,
        v: from + n,
      }
    })
  const grow = async (at: string, rows: PointRow[]): Promise<void> => {
    await makeLake(root, [{ at, points: rows }])
    await makeViews(root)
  }
  await grow('2024-02-01T00:00:00Z', points(1, 10))
  await using own = await Agent.at(root)
  const question = { sql: 'SELECT v FROM points ORDER BY t', as_of: '2024-12-01', rows: 4 }
  const first = await own.one('query', question)
  // A question is open and holds its files; the commit does not wait for it.
  await grow('2024-02-02T00:00:00Z', points(11, 5))
  const second = await own.one('query', { ...question, cursor: first.cursor })
  expect([first.lake.version, second.lake]).toEqual([1, first.lake])
  const anew = await own.one('query', { ...question, rows: 5 })
  expect([anew.lake.version, anew.lake.digest === first.lake.digest]).toEqual([2, false])
  const last = await own.one('query', { ...question, cursor: second.cursor })
  expect([...first.rows, ...second.rows, ...last.rows].map(({ v }) => v)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(last.cursor).toBe(null)
  // Two versions are held at most: what is older is over, in words.
  const old = await own.one('query', { ...question, rows: 6 })
  await grow('2024-02-03T00:00:00Z', points(16, 5))
  expect(await own.one('query', { ...question, rows: 7 })).toMatchObject({ lake: { version: 3 } })
  expect(await own.one('query', { ...question, rows: 6, cursor: old.cursor })).toMatchObject({ lake: { version: 2 } })
  await grow('2024-02-04T00:00:00Z', points(21, 5))
  expect(await own.one('query', { ...question, rows: 8 })).toMatchObject({ lake: { version: 4 } })
  expect(await own.refusal('query', { ...question, rows: 5, cursor: anew.cursor })).toMatch(/over or unknown/)
})

const endless = 'SELECT count(*) FROM range(10000000000) a, range(10000000000) b'

test('an endless query is stopped by its time limit or a cancel, and the next one is answered', async () => {
  await using own = await Agent.at(folder, '--timeout', '1s')
  expect(await own.refusal('query', { sql: endless, as_of: asOf })).toMatch(/took longer than 1s/)
  expect(await own.one('query', { sql: 'SELECT 1 AS one', as_of: asOf })).toMatchObject({ rows: [{ one: 1 }] })
  const gone = new AbortController()
  const asked = [1, 2, 3].map(async () => await agent.ask('query', { sql: endless, as_of: asOf }, gone.signal))
  const failed = Promise.allSettled(asked)
  // Messages keep their order: what was answered twice since then came after the three questions.
  await agent.client.listTools()
  await agent.client.listTools()
  gone.abort()
  expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(await agent.one('query', { sql: 'SELECT 2 AS two', as_of: asOf })).toMatchObject({ rows: [{ two: 2 }] })
})

test('a call that ignores a cancel ends in an error, other calls are answered, and its cursors are closed', async () => {
  await using own = await Agent.at(folder, '--timeout', '3s')
  const { pid } = own
  const paged = { sql: 'SELECT t FROM points ORDER BY t, v', as_of: asOf, rows: 3 }
  const { cursor } = await own.one('query', paged)
  const deaf =
    "SELECT levenshtein(repeat('ab', 60000), repeat('ba', 60000) || CAST(i AS VARCHAR)) FROM range(50) AS r(i)"
  const refused = own.refusal('query', { sql: deaf, as_of: asOf })
  expect(await own.one('query', { sql: 'SELECT 1 AS one', as_of: asOf })).toMatchObject({ rows: [{ one: 1 }] })
  expect(await refused).toMatch(/longer than 3s/)
  expect(await own.refusal('query', { ...paged, cursor })).toMatch(
    /over or unknown; send the query again without a cursor/,
  )
  expect(await own.one('query', paged)).toMatchObject({ row_count: 3 })
  expect(own.said).toContain('a cancelled query did not end by itself; another process goes on')
  expect(alive(pid)).toBe(true)
})
