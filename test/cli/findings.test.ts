// @module-tag full
import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { parseFault } from '../../src/sandbox/faults.ts'
import { createSandbox } from '../../src/sandbox/sandbox.ts'
import { serve } from '../../src/sandbox/server.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { temporaryFolder } from '../helpers/folders.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { registryStateAt } from '../helpers/registry-truth.ts'

/*
 * A lake in which verify found what differs, in points and in records, and of which a schema changed: taken note of,
 * and through all that keeps a lake for years.
 */

const wednesday = Date.UTC(2026, 5, 3, 12) / 1000
const keys = { metrics: 'findings-metrics-key', registry: 'findings-registry-key' }

interface Desk {
  readonly cwd: string
  readonly clock: { now: number }
  faults(...texts: readonly string[]): void
  run(...argv: readonly string[]): Promise<Ended>
  /** The rows of a query, a line each. */
  query(sql: string, ...argv: readonly string[]): Promise<string>
  /** The same, which must end so. */
  ends(code: number, ...argv: readonly string[]): Promise<string>
}

async function withDesk(work: (desk: Desk) => Promise<void>): Promise<void> {
  using folder = temporaryFolder('findings')
  const cwd = folder.path
  writeFileSync(join(cwd, 'asked.sql'), asked)
  const clock = { now: wednesday }
  const sandbox = createSandbox({
    catalogue,
    seed: 5,
    now: () => clock.now,
    sleep: async (ms) => await setTimeout(Math.min(ms, 50)),
    scale: 'demo',
    metricsKey: keys.metrics,
    registryKey: keys.registry,
  })
  const served = await serve(sandbox, { port: 0 })
  const env = {
    PITLAKE_METRICS_URL: served.url,
    PITLAKE_METRICS_KEY: keys.metrics,
    PITLAKE_REGISTRY_URL: `${served.url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: keys.registry,
  }
  const run = async (...argv: readonly string[]): Promise<Ended> =>
    await pitlake(cwd, argv, env, { now: () => clock.now * 1000 })
  const ends = async (code: number, ...argv: readonly string[]): Promise<string> => {
    const done = await run(...argv)
    expect(done.code, `${argv.join(' ')}: ${done.message} ${done.notes}`).toBe(code)
    return done.out
  }
  let outs = 0
  const query = async (sql: string, ...argv: readonly string[]): Promise<string> => {
    const out = `rows-${++outs}.jsonl`
    await ends(0, 'sql', sql, '--format', 'jsonl', '--out', out, ...argv)
    return readFileSync(join(cwd, out), 'utf8')
  }
  try {
    await work({ cwd, clock, query, faults: (...texts) => sandbox.setFaults(texts.map(parseFault)), run, ends })
  } finally {
    await served.close()
  }
}

const supply = 'supply/current_pit'
const fetched = ['--assets', 'BTC', '--paths', `${supply},addresses/active_count_pit`, '--since', '2026-05-20'] as const
const issuers = [...(registryStateAt({ seed: 5, scale: 'demo' }, wednesday).get('issuers')?.values() ?? [])]
const active = issuers.filter(({ status }) => status === 'active').map(({ id }) => String(id))
const [silent = '', retired = ''] = active
const lies = [
  `silent-change:record=issuers/${silent},field=website,value=https://elsewhere.example`,
  `silent-change:record=issuers/${retired},field=status,value=inactive`,
  `rewrite@${supply}:t=2026-05-25,v=101`,
  'becomes-object@addresses/*:t=2026-06-03',
]
const again = ['verify', '--resources', 'issuers', '--paths', supply, '--all', '--json'] as const

interface Standing {
  readonly violations: number
  readonly registry: { readonly findings: number | null; readonly findings_acknowledged: number }
}

interface Hooked {
  readonly command: string
  readonly new: number
  readonly violations: readonly object[]
}

interface Told {
  readonly violations: readonly {
    id: string
    kind: string
    resource?: string
    record?: string
    acknowledged: string | null
  }[]
}

const listed = (out: string): Told['violations'] => (JSON.parse(out) as Told).violations

/** What a reader sees of it all. */
const asked = `SELECT * FROM (
  SELECT concat_ws(' ', 'finding', found_at, kind, resource, id, detail, md5(held), md5(offered), acknowledged_at, why) AS line FROM registry_findings
  UNION ALL SELECT concat_ws(' ', 'violation', metric, t, kind, stored, offered, acknowledged_at, why) FROM violations
  UNION ALL SELECT concat_ws(' ', 'schema', resource, path, first_seen, kind, value) FROM schema_changes
  UNION ALL SELECT concat_ws(' ', 'points', count(*), sum(v)) FROM points) ORDER BY line`

/** What `status` makes of it, and the pages that it draws. */
async function standing({ run, ends, cwd }: Desk): Promise<readonly unknown[]> {
  const { code, out } = await run('status', '--check', '--metrics', 'lake.prom')
  const { registry, violations } = JSON.parse(await ends(0, 'status', '--json', '--html', 'page.html')) as Standing
  const told = /registry_findings\{state="open"\} (\d+)\n.*acknowledged"\} (\d+)/.exec(
    readFileSync(join(cwd, 'lake.prom'), 'utf8'),
  )
  expect(told?.slice(1).map(Number)).toEqual([registry.findings, registry.findings_acknowledged])
  expect(violations).toBe(0)
  const rows = readFileSync(join(cwd, 'page.html'), 'utf8').split('<td class="id">registry issuers</td>').length - 1
  return [code, out.split(':')[0], registry.findings, registry.findings_acknowledged, rows]
}

test('registry findings of verify are acknowledged by id, by resource and once for a pair of records', async () =>
  withDesk(async (desk) => {
    const { cwd, clock, faults, run, ends, query } = desk
    writeFileSync(join(cwd, 'pitlake.yaml'), 'hooks: { on_violation: cat >> told.jsonl }\n')
    const told = (): Hooked[] =>
      readFileSync(join(cwd, 'told.jsonl'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Hooked)
    await ends(0, 'registry', 'sync')
    expect(await ends(0, 'violations', 'list')).toBe('0 open, 0 acknowledged\n')
    clock.now += 60
    faults(...lies)
    await ends(4, 'verify', '--resources', 'issuers', '--all')
    const found = listed(await ends(0, 'violations', 'list', '--json'))
    expect(found.map(({ kind, resource, record }) => `${kind} ${resource} ${record}`).toSorted()).toEqual(
      [`lost_event issuers ${retired}`, `silent_change issuers ${silent}`].toSorted(),
    )
    expect(await standing(desk)).toEqual([4, 'integrity', 2, 0, 2])
    expect(await ends(0, 'status')).toMatch(/2 records of the registry contradict[^]*, 2 contradictions$/m)
    expect(await ends(0, 'status', '--check', '--max-findings', '2')).toMatch(/^trusted/)
    expect(told()).toMatchObject([{ command: 'verify', new: 2, open: 2, violations: found }])
    const one = found.find(({ kind }) => kind === 'silent_change')
    expect(one).toMatchObject({ metric: null, t: null, stored: expect.stringContaining('website'), acknowledged: null })
    expect(await ends(0, 'violations', 'list', '--paths', '*')).toMatch(/^0 open/)
    expect(await ends(0, 'violations', 'list', '--resources', 'venues')).toMatch(/^0 open/)
    expect((await run('violations', 'list', '--resources', 'isuers')).message).toMatch(/isuers.*issuers/)
    expect(await ends(0, 'violations', 'acknowledge', one?.id ?? '', '--why', 'they said so')).toMatch(
      /^1 acknowledged \(version/,
    )
    expect(await ends(0, 'violations', 'acknowledge', one?.id ?? '', '--why', 'twice')).toMatch(
      /^0 acknowledged .*1 had been/,
    )
    const half = JSON.parse(await ends(4, 'verify', '--resources', 'issuers', '--all', '--json')) as {
      registry: object
    }
    expect(half.registry).toMatchObject({ acknowledged: 1, findings: [{ kind: 'lost_event', id: retired }] })
    clock.now += 60
    await ends(0, 'violations', 'acknowledge', '--resources', '*', '--why', 'known', '--yes')
    expect(await standing(desk)).toEqual([0, 'trusted', 0, 2, 2])
    const words = await ends(0, 'verify', '--resources', 'issuers', '--all')
    expect(words).toMatch(/^known +2 acknowledged contradictions, not reported again$/m)
    expect(await query('SELECT acknowledged_at IS NULL AS open, why FROM registry_findings ORDER BY why')).toBe(
      '{"open":false,"why":"known"}\n{"open":false,"why":"they said so"}\n',
    )
    const then = ['--observed-as-of', new Date(clock.now * 1000 - 1).toISOString()]
    expect(await query('SELECT why FROM registry_findings', ...then)).not.toContain('known')

    // Another record is another finding; what a snapshot takes over is settled.
    faults(`silent-change:record=issuers/${silent},field=website,value=https://third.example`)
    clock.now += 60
    await ends(4, 'verify', '--resources', 'issuers', '--all')
    expect(listed(await ends(0, 'violations', 'list', '--json')).map(({ kind }) => kind)).toEqual(['silent_change'])
    expect(told().slice(1)).toMatchObject([{ new: 1, open: 1 }])
    expect(await standing(desk)).toEqual([4, 'integrity', 1, 2, 3])
    clock.now += 86_400
    await ends(0, 'registry', 'snapshot')
    expect(await standing(desk)).toEqual([0, 'trusted', 0, 2, 2])
    expect(told()).toHaveLength(2)
    expect(await ends(0, 'violations', 'list')).toBe('0 open, 2 acknowledged, 1 resolved\n')
    expect(listed(await ends(0, 'violations', 'list', '--all', '--json'))).toHaveLength(3)
    await ends(0, 'verify', '--resources', 'issuers', '--all')

    // Files of findings that cannot be read are doctor's; the status says that it does not know.
    const files = globSync('data/registry/registry_findings/*.parquet', { cwd }).map((file) => join(cwd, file))
    for (const file of files) writeFileSync(file, Buffer.alloc(statSync(file).size))
    const blind = JSON.parse(await ends(0, 'status', '--json')) as Standing
    expect([files.length > 0, blind.registry.findings]).toEqual([true, null])
    await ends(0, 'registry', 'sync')
  }))

test('findings of verify stay as they are through doctor, compact, vacuum, backup, publish and replay', async () =>
  withDesk(async ({ clock, faults, ends, query }) => {
    await ends(0, 'fetch', ...fetched)
    await ends(0, 'registry', 'sync')
    clock.now += 2 * 86_400
    faults(...lies)
    await ends(0, 'fetch', ...fetched)
    await ends(4, ...again)
    const [point] = listed(await ends(0, 'violations', 'list', '--paths', supply, '--json'))
    await ends(0, 'violations', 'acknowledge', point?.id ?? '', '--why', 'noted')
    const seen = async (...more: readonly string[]): Promise<string> => await query(asked, ...more)
    const kept = await seen()
    for (const [what, count] of Object.entries({ finding: 2, violation: 1, schema: 1, points: 1 }))
      expect(
        kept.split('\n').filter((row) => row.includes(`"line":"${what} `)),
        what,
      ).toHaveLength(count)
    expect(kept).toMatch(/"violation .* noted"/)
    await ends(0, 'stamp', 'asked.sql', '--out', 'r.parquet')
    await ends(0, 'doctor')
    await ends(0, 'compact')
    expect(await seen()).toBe(kept)
    await ends(0, 'doctor', '--rebuild-ledger')
    await ends(0, 'doctor', '--repair')
    expect(await seen()).toBe(kept)
    await ends(0, 'backup', 'kept')
    clock.now += 60
    await ends(0, 'vacuum', '--keep', '0d', '--yes')
    expect(await seen()).toBe(kept)
    await ends(0, 'replay', 'r.parquet')
    await ends(0, 'publish', 'pub', '--lake')
    await ends(0, 'restore', 'kept', '--data', 'back')
    await ends(0, 'pull', 'pub', '--data', 'mirror')
    for (const data of ['back', 'mirror']) {
      expect(await seen('--data', data)).toBe(kept)
      await ends(0, 'doctor', '--data', data)
    }
    // The restored lake knows what was taken note of, and finds nothing twice.
    const next = JSON.parse(await ends(4, ...again, '--data', 'back')) as {
      acknowledged: number
      registry: { findings: object[] }
    }
    expect([next.acknowledged, next.registry.findings.length]).toEqual([1, 2])
    expect(await seen('--data', 'back')).toBe(kept)
    await ends(
      0,
      'violations',
      'acknowledge',
      '--resources',
      '*',
      '--why',
      'later',
      '--yes',
      '--kinds',
      'lost_event,silent_change',
      '--data',
      'back',
    )
    await ends(0, 'replay', 'r.parquet', '--data', 'back')
  }))
