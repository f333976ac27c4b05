// @module-tag full
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { type Rig, fetchKey, otherKey, withRig } from '../helpers/fetching.ts'
import { keyTraces } from '../helpers/key-search.ts'
import { alive, until } from '../helpers/processes.ts'
import { freshFolder } from '../helpers/scratch.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 10, 12) / 1000
const supply = { assets: ['BTC'], paths: ['supply/current_pit'], intervals: ['24h'], since: now - 9 * day }
const token = 'a-token-of-the-listener'

let home = ''
freshFolder('hooks', (path) => (home = path))

/** What a hook was told, a document a call. */
function told(name: string): Record<string, unknown>[] {
  const file = join(home, `${name}.jsonl`)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** Each hook writes down what it is told. */
const writing = ['on_done', 'on_violation', 'on_stale'].map((name) => `  ${name}: cat >> ${name}.jsonl\n`).join('')

async function run(
  rig: Rig,
  argv: readonly string[],
  hooks = writing,
  world: Partial<Deps> = { now: () => rig.clock.now * 1000 },
): Promise<Ended> {
  writeFileSync(
    join(home, 'pitlake.yaml'),
    `hooks:\n${hooks}select:\n  - { assets: [BTC], paths: [supply/current_pit], since: ${supply.since} }\n`,
  )
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    PITLAKE_DATA: rig.root,
    PITLAKE_METRICS_URL: rig.url,
    PITLAKE_METRICS_KEY: fetchKey,
    // A watch of the metrics alone is quick.
    ...(argv[0] !== 'watch' && { PITLAKE_REGISTRY_URL: `${rig.url}/registry/v1` }),
    PITLAKE_REGISTRY_KEY: otherKey,
    PITLAKE_TOKEN: token,
    AWS_SECRET_ACCESS_KEY: 'a-bucket-key-of-ours',
    MY_COPY: `x-${fetchKey}`,
  }
  return await pitlake(home, argv, env, world)
}

test('on_done receives how a run ended and none of the keys', async () =>
  await withRig(now, async (rig) => {
    const hooks = '  on_done: cat > told.json; env > env.txt; pwd > folder.txt\n'
    const ended = await run(rig, ['fetch', '--json'], hooks)
    expect([ended.code, ended.message]).toEqual([0, ''])
    const facts = JSON.parse(readFileSync(join(home, 'told.json'), 'utf8'))
    expect(facts).toEqual({
      hook: 'on_done',
      at: '2026-03-10T12:00:00Z',
      data: rig.root,
      synthetic: true,
      version: JSON.parse(ended.out).version,
      command: 'fetch',
      exit_code: 0,
      error: null,
      report: JSON.parse(ended.out),
    })
    const env = readFileSync(join(home, 'env.txt'), 'utf8')
    expect(env).toContain(`PITLAKE_DATA=${rig.root}\n`)
    expect(env).toContain(`HOME=${home}\n`)
    expect(await keyTraces(rig.root, [fetchKey, otherKey, token])).toEqual([])
    for (const secret of [
      fetchKey,
      otherKey,
      token,
      'a-bucket-key-of-ours',
      'PITLAKE_METRICS',
      'AWS_SECRET',
      'MY_COPY',
    ])
      expect(env).not.toContain(secret)
    expect(readFileSync(join(home, 'folder.txt'), 'utf8').trim()).toMatch(/pitlake-hooks-\w+$/)
  }))

test('on_violation runs once for a new violation, and again for a further value', async () =>
  await withRig(now, async (rig) => {
    expect((await run(rig, ['fetch'])).code).toBe(0)
    const offered = async (v: number): Promise<void> => {
      rig.clock.now += 600
      rig.faults(`rewrite@supply/*:point=0,v=${v}`)
      expect((await run(rig, ['verify', '--all'])).code).toBe(4)
    }
    await offered(101)
    await offered(101)
    expect(told('on_violation')).toEqual([
      expect.objectContaining({
        hook: 'on_violation',
        command: 'verify',
        new: 1,
        open: 1,
        violations: [expect.objectContaining({ metric: 'supply/current_pit', asset: 'BTC', offered: '101.0' })],
      }),
    ])
    // The value before it is no longer shown: it has passed.
    await offered(102)
    expect(told('on_violation').map((facts) => [facts['new'], facts['open']])).toEqual([
      [1, 1],
      [1, 1],
    ])
    expect(told('on_done').map((facts) => [facts['command'], facts['exit_code']])).toEqual([
      ['fetch', 0],
      ['verify', 4],
      ['verify', 4],
      ['verify', 4],
    ])
  }))

test('violations from before a hook was configured do not run it', async () =>
  await withRig(now, async (rig) => {
    await run(rig, ['fetch'], '  {}\n')
    rig.faults('rewrite@supply/*:point=0,v=101')
    expect((await run(rig, ['verify'], '  {}\n')).code).toBe(4)
    expect(existsSync(join(rig.root, 'alarms.json'))).toBe(false)
    expect((await run(rig, ['fetch'])).code).toBe(0)
    expect(told('on_violation')).toEqual([])
  }))

test('on_stale runs once until the series is fresh again', async () =>
  await withRig(now, async (rig) => {
    await run(rig, ['fetch'])
    await run(rig, ['registry', 'sync'])
    expect(told('on_stale')).toEqual([])
    rig.clock.now += 2 * day
    rig.faults('reset@metrics')
    const stale = { kind: 'failed', text: expect.stringContaining('the provider gave no usable answer') }
    for (let times = 0; times < 2; times++) expect((await run(rig, ['fetch'])).code).toBe(6)
    const first = told('on_stale')
    expect(first).toEqual([expect.objectContaining({ new: 1, open: 1, stale: [expect.objectContaining(stale)] })])
    rig.faults()
    expect((await run(rig, ['fetch'])).code).toBe(0)
    expect(told('on_stale')).toHaveLength(1)
    rig.clock.now += 5 * day
    rig.faults('reset@metrics')
    expect((await run(rig, ['fetch'])).code).toBe(6)
    expect(told('on_stale').slice(1)).toEqual([
      expect.objectContaining({
        new: 2,
        stale: [{ registry: true, late_seconds: expect.closeTo(7 * day, -2) }, expect.objectContaining(stale)],
      }),
    ])
  }))

/** Hooks that fail, and what is said of each. */
const failing: readonly (readonly [hook: string, words: RegExp])[] = [
  ['on_done: exit 3', /^note: hook on_done: ended with exit code 3$/m],
  [`on_done: echo ${fetchKey} >&2; exit 1`, /^note: hook on_done: ended with exit code 1: \[key\]$/m],
  ['on_done: kill -9 $$', /^note: hook on_done: ended with SIGKILL$/m],
  ['on_done: [/no/such/program]', /^note: hook on_done: cannot be run: .*ENOENT$/m],
  ['on_done: no-such-program', /^note: hook on_done: ended with exit code 127: .*no-such-program/m],
]

const pidIn = (name: string): number => Number(readFileSync(join(home, name), 'utf8'))

test('a hook that fails is told, one that hangs is ended with all of its group, also one that will not hear, and the job ends as it did; nobody waits for what one leaves behind', async () =>
  await withRig(now, async (rig) => {
    const notes = async (hooks: string): Promise<string> => {
      const ended = await run(rig, ['fetch'], hooks)
      expect([ended.code, ended.message]).toEqual([0, ''])
      expect(ended.notes + ended.out).not.toContain(fetchKey)
      return ended.notes
    }
    for (const [hook, words] of failing) expect(await notes(`  ${hook}\n`)).toMatch(words)
    const deaf = `trap '' TERM; (trap '' TERM; echo $(exec sh -c 'echo $PPID') > inner.pid; sleep 600) & echo $$ > outer.pid; wait; sleep 600`
    const hanging = await notes(`  limit: 1s\n  on_done: ${JSON.stringify(deaf)}\n`)
    expect(hanging).toMatch(/^note: hook on_done: took longer than 1 s$/m)
    for (const name of ['inner.pid', 'outer.pid']) await until(() => !alive(pidIn(name)), `the end of ${name}`)
    expect(await notes('  on_done: "sleep 600 & echo $! > left.pid"\n')).not.toContain('hook')
    await until(() => !alive(pidIn('left.pid')), 'the end of what was left')
  }))

test('a refused call, a dry run and a configuration without hooks run no hook; a daily run passes its steps', async () =>
  await withRig(now, async (rig) => {
    expect((await run(rig, ['fetch', '--assets', ''])).code).toBe(2)
    expect(told('on_done')).toEqual([])
    expect((await run(rig, ['daily'])).code).toBe(0)
    expect((await run(rig, ['daily', '--dry-run'])).code).toBe(0)
    const [facts] = told('on_done')
    expect(told('on_done')).toHaveLength(1)
    expect(facts).toMatchObject({ command: 'daily', exit_code: 0, report: { exit_code: 0 } })
    expect(facts?.['report']).toHaveProperty('steps.0.step', 'fetch')
  }))

test('an unknown hook and a wrong limit are one line each', async () =>
  await withRig(now, async (rig) => {
    const wrong = async (hooks: string): Promise<string> => {
      const { code, message } = await run(rig, ['fetch'], hooks)
      expect(message.split('\n')).toHaveLength(1)
      return `${code} ${message}`
    }
    expect(await wrong('  on_dine: x\n')).toMatch(/^2 pitlake.yaml:2: hooks.on_dine: .*did you mean `on_done`/)
    expect(await wrong('  limit: 2h\n')).toMatch(/^2 pitlake.yaml:2: hooks.limit: expected from 1s to 1h/)
    expect(await wrong('  on_done: 5\n')).toMatch(
      /^2 pitlake.yaml:2: hooks.on_done: expected text or a list, got a number/,
    )
    expect(rig.sandbox.requests()).toEqual([])
  }))

/** A world whose every wait moves its clock and the provider's, until an instant. */
function running(rig: Rig, end: number): Partial<Deps> {
  const stop = new AbortController()
  return {
    now: () => rig.clock.now * 1000,
    signal: stop.signal,
    sleep: async (ms) => {
      await setImmediate()
      rig.clock.now += ms / 1000
      if (rig.clock.now > end) stop.abort()
    },
  }
}

test('a watch runs its hook after each turn with news and at its end; a hook that hangs delays nothing', async () =>
  await withRig(now, async (rig) => {
    expect((await run(rig, ['fetch'], '  {}\n')).code).toBe(0)
    const live = running(rig, now + 2 * day)
    const hooks = '  limit: 1s\n  on_stale: exit 1\n  on_done: cat >> on_done.jsonl; sleep 600\n'
    const ended = await run(rig, ['watch', '--json'], hooks, live)
    expect([ended.code, ended.message]).toEqual([0, ''])
    const events = ended.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const brought = events.filter(({ kind, brought: points }) => kind === 'metrics' && points > 0)
    expect(brought).toHaveLength(2)
    expect(events.findLastIndex(({ kind }) => kind === 'metrics')).toBeGreaterThan(0)
    expect(events).toContainEqual(expect.objectContaining({ kind: 'hook', words: 'on_done: took longer than 1 s' }))
    // Turns are quicker than hooks that hang: those wait for each other, not the watch.
    expect(told('on_done')[0]).toMatchObject({ command: 'watch', event: { kind: 'metrics', brought: 1 } })
    expect(ended.out + ended.notes).not.toContain(fetchKey)
  }))

test('a watch reports a series that becomes stale during an outage once', async () =>
  await withRig(now, async (rig) => {
    expect((await run(rig, ['fetch'], '  {}\n')).code).toBe(0)
    rig.faults('reset@metrics')
    const end = now + 18 * 3600
    expect((await run(rig, ['watch'], '  on_stale: cat >> on_stale.jsonl\n', running(rig, end))).code).toBe(0)
    const point = Math.floor(now / day) * day + day
    expect(told('on_stale')).toEqual([
      expect.objectContaining({
        command: 'watch',
        stale: [{ metric: 'supply/current_pit', interval: '24h', series: 1, late_seconds: expect.any(Number) }],
      }),
    ])
    const at = Date.parse(String(told('on_stale')[0]?.['at'])) / 1000
    expect(at - point).toBeGreaterThanOrEqual(3600)
    // It looks between its polls, which become rarer while nobody answers.
    expect(at - point).toBeLessThan(4 * 3600)
  }))
