// @module-tag full
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { golden } from '../helpers/golden-rows.ts'
import { type Foreign, type Otherwise, wednesday, withForeign } from '../helpers/preflight.ts'
import { sample } from '../helpers/tiers.ts'

const meaning = 'meaning of `t`'

test('the usual provider contradicts nothing: at most ten requests, and nothing is left on the disk', async () =>
  withForeign({}, async ({ ask, cwd, requests, run }) => {
    const said = await ask()
    expect([said.code, said.message, said.against, said.yaml]).toEqual([0, '', [], null])
    expect(said.requests).toBeLessThanOrEqual(10)
    expect(requests()).toHaveLength(said.requests)
    expect(readdirSync(cwd)).toEqual([])
    const { out } = await run('doctor', '--provider')
    expect(out).toMatch(/^metrics API\n(?: {2}\S[^\n]+\n){5,}registry API\n(?: {2}\S[^\n]+\n){3,}\d/)
    expect(out.split('registry API')[1]).not.toContain(meaning)
    expect(out).toMatch(/^ {2}holds +meaning of `t`: computed_at is 24\.\d h to 24\.\d h after/m)
    expect(out).toMatch(/^ {2}not checked {5}cost: /m)
    expect(out).toMatch(/^\d+ requests: \d+ holds, 0 contradicted, \d+ not checked$/m)
  }))

/** Providers by what speaks otherwise: what is contradicted then and the YAML that mends it, or what is told of it. */
const providers = golden('preflight/providers') as {
  readonly mended: readonly (readonly [string, Otherwise, readonly string[], string])[]
  readonly unadapted: readonly (readonly [string, Otherwise, string, string])[]
  readonly told: readonly (readonly [string, Otherwise, string, string])[]
  readonly ended: readonly (readonly [string, Otherwise, number, string])[]
}
const { mended } = providers

const selection = ['--assets', 'BTC', '--paths', 'supply/current_pit', '--intervals', '24h,1w', '--since', '2026-01-01']

test.each(sample(mended, mended.length))(
  '%s: it is found, and the YAML mends it',
  async (_, otherwise, against, yaml) =>
    withForeign(otherwise, async ({ ask, config }) => {
      const before = await ask()
      expect([before.code, before.against]).toEqual([4, against.toSorted((a, b) => order(before.rows, a, b))])
      expect(before.message).toMatch(/assumptions? contradicted: .*; put the YAML above into pitlake\.yaml/)
      expect(before.requests).toBeLessThanOrEqual(10)
      expect(readable(before.yaml)).toEqual(readable(yaml))
      config(before.yaml ?? '')
      const after = await ask()
      expect([after.code, after.against, after.yaml]).toEqual([0, [], null])
    }),
)

test.each([0, 5, 13])('a fetch with the proposed YAML stores what the provider has (%s)', async (which) => {
  const [, otherwise, , yaml] = mended[which] ?? ['', {}, [], '']
  await withForeign(otherwise, async ({ config, run, cwd }) => {
    config(yaml)
    const fetched = await run('fetch', ...selection, '--json')
    expect([fetched.code, fetched.message]).toEqual([0, ''])
    expect(JSON.parse(fetched.out)).toMatchObject({ windows: { failed: 0, unsupported: 0 }, violations: 0 })
    const query = `SELECT "interval", strftime(min(t), '%a %d.%m.'), strftime(max(t), '%a %d.%m.'), count(*) AS n FROM points GROUP BY ALL ORDER BY n`
    const { message } = await run('sql', '--format', 'csv', '--out', 'out.csv', query)
    expect(message).toBe('')
    // 62 days of which March 3 is the last that is over, and the weeks that begin and end among them.
    const weeks = which === 13 ? '1w,Sat 03.01.,Sat 21.02.,8' : '1w,Mon 05.01.,Mon 23.02.,8'
    const out = readFileSync(join(cwd, 'out.csv'), 'utf8')
    expect(out.trim().split('\n').slice(1)).toEqual([weeks, '24h,Thu 01.01.,Tue 03.03.,62'])
  })
})

test('a poll with the proposed YAML fills the reference columns of the registry', async () =>
  withForeign({ dialect: ['body:issuer_id=maker', 'body:product_id=of'] }, async ({ config, run, cwd }) => {
    config('registry: { fields: { products: { issuer_id: maker }, deployments: { product_id: of } } }\n')
    expect((await run('registry', 'sync')).message).toBe('')
    const query = `SELECT count(*) > 0, count(p.issuer_id) = count(*), count(i.id) = count(*), (SELECT count(*) = count(product_id) FROM deployments)
      FROM products p LEFT JOIN issuers i ON i.id = p.issuer_id`
    expect((await run('sql', '--format', 'csv', '--out', 'out.csv', query)).message).toBe('')
    expect(readFileSync(join(cwd, 'out.csv'), 'utf8').trim().split('\n')[1]).toBe('true,true,true,true')
  }))

function order(rows: readonly { assumption: string }[], a: string, b: string): number {
  const place = (name: string): number => rows.findIndex(({ assumption }) => assumption === name)
  return place(a) - place(b)
}

function readable(yaml: string | null): string[] {
  return (yaml ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .toSorted()
}

test.each(providers.unadapted)('%s: it is found, and nothing adapts it', async (_, otherwise, assumption, evidence) =>
  withForeign(otherwise, async ({ ask }) => {
    const said = await ask()
    expect(said.row(assumption)).toMatch(new RegExp(evidence))
    expect(said.row(assumption)).toMatch(/^contradicted: .*; no setting can adapt it$/)
    expect([said.code, said.yaml]).toEqual([4, null])
    expect(said.message).toMatch(/no setting mends it/)
  }),
)

test.each(providers.told)('%s: preflight reports it and exits with 0', async (_, otherwise, assumption, told) =>
  withForeign(otherwise, async ({ ask }) => {
    const said = await ask()
    expect(said.row(assumption)).toMatch(new RegExp(told))
    expect([said.code, said.against]).toEqual([0, []])
  }),
)

test('a day that is not over is no end of one: a second look shows that it moves', async () => {
  let ticks = 0
  const options = { now: () => wednesday + ticks++ }
  await withForeign({ dialect: ['computed_at=none', 'unfinished=shown'], options }, async ({ ask }) => {
    const said = await ask()
    expect(said.row(meaning)).toMatch(/^unknown: .*moves: unfinished days are returned/)
    expect([said.code, said.yaml]).toEqual([0, null])
  })
})

test('a lake that follows the feed shows events without requesting a snapshot', async () =>
  withForeign({}, async ({ ask, run, clock, requests }) => {
    expect((await run('registry', 'snapshot')).code).toBe(0)
    clock.now += 7 * 86_400
    const before = requests().length
    const said = await ask()
    expect(said.row('events')).toMatch(/^holds: \d+ under `data`/)
    expect(said.row('entity types')).toMatch(/^holds: .*product/)
    expect(said.row('layout of a snapshot')).toBe('holds: the lake holds a snapshot of 2026-03-04')
    expect(
      requests()
        .slice(before)
        .map(({ path }) => path),
    ).not.toContain('/registry/v1/snapshot')
    expect(said.code).toBe(0)
  }))

test('a registry with other names around its records: found, pasted, and followed like the usual one', async () => {
  const told: string[][] = []
  const follow = async ({ run, clock, cwd }: Foreign, after: () => Promise<void>): Promise<void> => {
    expect((await run('registry', 'snapshot')).message).toBe('')
    clock.now += 7 * 86_400
    await after()
    const synced = await run('registry', 'sync', '--json')
    expect([synced.code, synced.message]).toEqual([0, ''])
    const { events, opened, updated, closed } = JSON.parse(synced.out) as Record<string, number>
    expect(events).toBeGreaterThan(20)
    await run(
      'sql',
      'SELECT op, entity_type, entity_id FROM registry_events ORDER BY ALL',
      '--format',
      'csv',
      '--out',
      'events.csv',
    )
    told.push([[events, opened, updated, closed].join(' '), readFileSync(join(cwd, 'events.csv'), 'utf8')])
  }
  await withForeign({}, async (usual) => await follow(usual, async () => undefined))
  const around = ['has_more=more', 'next_cursor=next', 'entity_type=kind', 'entity_id=about', 'op=what', 'record=now']
  const dialect = ['wrap=registry', ...around.map((one) => `body:${one}`)]
  await withForeign({ dialect }, async (foreign) => {
    const { ask, config, run } = foreign
    expect((await run('registry', 'snapshot')).code).toBe(6)
    const before = await ask()
    expect([before.code, readable(before.yaml)]).toEqual([
      4,
      readable('registry:\n  keys:\n    data: registry\n    has_more: more\n    next_cursor: next\n'),
    ])
    config(before.yaml ?? '')
    expect((await ask()).code).toBe(0)
    await follow(foreign, async () => {
      const now = await ask()
      expect(now.row('events')).toMatch(/^contradicted: an event without entity_type \(the page has /)
      const all = [before.yaml ?? '', ...around.slice(2).map((one) => `    ${one.replace('=', ': ')}\n`)].join('')
      expect(readable(now.yaml)).toEqual(readable(all))
      config(now.yaml ?? '')
      expect([(await ask()).code, (await ask()).against]).toEqual([0, []])
    })
  })
  expect(told[1]).toEqual(told[0])
})

test.each(providers.ended)(
  '%s ends with its exit code, and every other check still runs',
  async (_, otherwise, code, message) =>
    withForeign(otherwise, async ({ ask }) => {
      const said = await ask()
      expect([said.code, said.message]).toEqual([code, expect.stringMatching(new RegExp(message))])
      expect(said.rows.some(({ verdict }) => verdict === 'holds')).toBe(true)
    }),
)
