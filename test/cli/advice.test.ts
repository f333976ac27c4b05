import { expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import { pitlake } from '../helpers/command.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'
import { leaping } from '../helpers/leaping.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const supply = 'supply/current_pit'
const { root: folder } = lakeOfFile(hundredFetchedDays)

const one = `WITH d AS (SELECT 'BTC' AS asset, '2024-02-01' AS ts)`

test.each([
  ['sql nofile.sql', 'pitlake sql: expected a query, got the name of a file; -f nofile.sql runs it'],
  ['sql SELECT --json', 'pitlake sql: expected a known option, got --json; did you mean `--format json`?'],
  [
    'fetch --paths price_usd --assets BTC',
    'paths: price_usd: expected a path or glob that matches an endpoint, got no match; it is made of one path in both currencies: `--paths supply/current_pit --currencies native,usd`',
  ],
])('%s', async (line, message) => {
  const env = { PITLAKE_METRICS_URL: 'http://127.0.0.1:9', PITLAKE_METRICS_KEY: fetchKey }
  expect(await pitlake(folder, [...line.split(' '), '--data', folder], env)).toMatchObject({ code: 2, message })
})

test.each([
  [`${one} FROM pit_join('d', '${supply}', '1d')`, /has no interval 1d: expected 10m, .*; did you mean `24h`\?$/],
])('in SQL: %s', async (sql, message) => {
  await expect(pitlake(folder, ['sql', sql, '--data', folder])).resolves.toMatchObject({
    code: 2,
    message: expect.stringMatching(message),
  })
})

test('from a program: each is a LakeError of the call', async () => {
  const lake = await openLake(folder)
  const decisions = [{ asset: 'BTC', ts: '2024-02-01' }]
  const slips: readonly (readonly [() => Promise<unknown>, RegExp])[] = [
    // Cast: a caller without types may pass any value.
    [
      async () => lake.pitJoin({ decisions, metric: supply, latency: 15 as never }),
      /latency: expected a time .* got 15$/,
    ],
    [
      async () => lake.calendar({ since: '2024-01-01', until: '2024-01-02', step: '15' }),
      /expected a time .* got '15'$/,
    ],
  ]
  for (const [ask, message] of slips)
    await expect(ask()).rejects.toThrow(
      expect.objectContaining({ name: 'LakeError', kind: 'usage', message: expect.stringMatching(message) }),
    )
  await lake.close()
  for (const ask of [
    async () => lake.status(),
    async () => lake.stamp('SELECT 1', 'r'),
    async () => lake.lookahead('FROM x'),
  ])
    await expect(ask()).rejects.toThrow(
      expect.objectContaining({ kind: 'usage', message: expect.stringMatching(/^lake: /) }),
    )
})

test('an asset that the listing lacks is reported with a similar one before a request is sent', async () => {
  const now = Date.UTC(2026, 2, 4, 12) / 1000
  await withRig(now, async (rig) => {
    let requests = 0
    rig.onRequest(() => requests++)
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: rig.root }
    const run = async (line: string) =>
      pitlake(
        rig.root,
        line.split(' '),
        env,
        leaping(() => rig.clock.now),
      )
    const rest = `--paths ${supply} --since 2026-02-20`
    expect(await run(`fetch --assets BTC ${rest}`)).toMatchObject({ code: 0 })
    expect(requests).toBeGreaterThan(0)
    requests = 0
    for (const command of ['fetch', 'plan'])
      expect(await run(`${command} --assets ETH,BTX ${rest}`)).toMatchObject({
        code: 2,
        message: expect.stringMatching(/^--assets: expected .* as of 2026-03-04, got BTX; did you mean `BTC`\?/),
      })
    expect(requests).toBe(0)
    // What nothing is near may be new; what is held needs no listing.
    expect(await run(`fetch --assets BTC,Unheardof ${rest}`)).toMatchObject({ code: 0 })
    expect(requests).toBeGreaterThan(0)
  })
})
