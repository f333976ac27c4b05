import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { leaping } from '../helpers/leaping.ts'
import { said } from '../helpers/preflight.ts'
import { withProvider } from '../helpers/provider.ts'

const day = 86_400
const noon = Date.UTC(2026, 2, 4, 12) / 1000
const midnight = noon - day / 2

/** Points spaced so, the value being the day of the month that they describe; dated by their end. */
function points(query: URLSearchParams): unknown {
  const interval = query.get('resolution')
  const spacing = interval === '1h' ? 3600 : interval === '1w' ? 7 * day : day
  const last = interval === '1w' ? Date.UTC(2026, 2, 1) / 1000 : midnight
  const from = Number(query.get('from'))
  const to = Number(query.get('to'))
  const ends = Array.from({ length: 400 }, (_, n) => last - n * spacing).filter((t) => t >= from && t < to)
  return ends.toReversed().map((t) => ({ t, v: new Date((t - spacing) * 1000).getUTCDate() }))
}

test('a provider written by hand: found out, adapted to by the YAML, and read as it is', async () =>
  withProvider(noon, async (own) => {
    own.answer((path, query) => {
      if (path === '/v1/metadata/metric') return { status: 404 }
      if (path === 'assets') return ['BTC']
      for (const [name] of query)
        if (!['a', 'from', 'to', 'resolution', 'f', 'c', 'e'].includes(name))
          return { status: 400, text: `{"message":"Unrecognized query parameter: ${name}="}` }
      return points(query)
    })
    const env = { PITLAKE_METRICS_URL: own.url, PITLAKE_METRICS_KEY: 'a-key-for-this-one' }
    const run = async (...argv: string[]) =>
      await pitlake(
        own.root,
        argv,
        env,
        leaping(() => own.clock.now),
      )
    const before = said(await run('doctor', '--provider', '--json'))
    expect(before.code).toBe(4)
    expect(before.against).toEqual(['query keys of the metrics API', 'meaning of `t`', 'first day of a week'])
    expect(before.yaml).toContain('since: from\n    until: to\n    interval: resolution\n')
    expect(before.yaml).toContain('timestamp: interval_end\n  week_start: sunday\n')
    expect(before.row('limits')).toBe('unknown: PITLAKE_REGISTRY_URL is not set')
    expect(own.seen.length).toBe(before.requests)
    expect(before.requests).toBeLessThanOrEqual(10)
    writeFileSync(join(own.root, 'pitlake.yaml'), before.yaml ?? '')
    expect(said(await run('doctor', '--provider', '--json'))).toMatchObject({ code: 0, against: [] })
    const selection = ['--assets', 'BTC', '--paths', 'supply/current_pit', '--since', '2026-02-01']
    expect(await run('fetch', ...selection)).toMatchObject({ code: 0 })
    const query = `SELECT bool_and(v = date_part('day', t)), count(*), strftime(max(t), '%d.%m.%Y') FROM points`
    expect(await run('sql', query, '--format', 'csv', '--out', 'out.csv')).toMatchObject({ code: 0, message: '' })
    expect(readFileSync(join(own.root, 'out.csv'), 'utf8').split('\n')[1]).toBe('true,31,03.03.2026')
  }))
