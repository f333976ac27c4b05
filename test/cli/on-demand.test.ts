import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { withRig } from '../helpers/fetching.ts'
import { commitDeps, draftOf } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'

const now = Date.UTC(2026, 2, 10, 12)

const world = { now: () => now }
const run = async (cwd: string, env: Readonly<Record<string, string>>, ...argv: readonly string[]): Promise<Ended> =>
  await pitlake(cwd, argv, env, world)

const asked = ['fetch', '--assets', 'BTC', '--paths', 'supply/current_pit', '--since', '2026-03-01'] as const

test('a fetch into a sandbox lake starts a sandbox with the recorded seed and reports it', async () =>
  await withRig(now / 1000, async (rig) => {
    await rig.fetch({ assets: ['BTC'], paths: ['supply/current_pit'], since: now / 1000 - 20 * 86_400 })
    const before = (await rig.stored()).length
    const data = ['--data', rig.root]
    const same = await run(rig.root, {}, ...asked, '--intervals', '24h,1h', '--json', ...data)
    expect(same).toMatchObject({ code: 0, message: '' })
    expect(same.notes).toMatch(/no provider is set and this lake is synthetic: a sandbox with its seed 7 answers/)
    expect(JSON.parse(same.out)).toMatchObject({ violations: 0, stopped_by: null })
    expect(await rig.stored()).toEqual(
      [
        ...rig.truth({ assets: ['BTC'], paths: ['supply/current_pit'], since: now / 1000 - 20 * 86_400 }),
        ...rig.truth({
          assets: ['BTC'],
          paths: ['supply/current_pit'],
          intervals: ['1h'],
          since: Date.UTC(2026, 2) / 1000,
        }),
      ].toSorted(),
    )
    expect((await rig.stored()).length).toBeGreaterThan(before)
    const synced = await run(rig.root, {}, 'registry', 'sync', '--json', ...data)
    expect(synced).toMatchObject({ code: 0, notes: expect.stringContaining('its seed 7 answers') })

    const variables = ['URL', 'KEY', 'KEY_FILE'].flatMap((part) => [
      `PITLAKE_METRICS_${part}`,
      `PITLAKE_REGISTRY_${part}`,
    ])
    writeFileSync(join(rig.root, 'key'), 'key-of-somebody')
    for (const name of variables) {
      const value = name.endsWith('URL')
        ? 'http://127.0.0.1:1'
        : name.endsWith('FILE')
          ? join(rig.root, 'key')
          : 'key-of-somebody'
      const left = await run(rig.root, { [name]: value }, ...asked, '--max-requests', '1', ...data)
      expect(left, name).toMatchObject({ code: 2, message: expect.stringMatching(/got nothing/) })
      expect(left.notes, name).not.toMatch(/sandbox/)
    }
    writeFileSync(join(rig.root, 'pitlake.yaml'), 'registry: { url: "http://127.0.0.1:1" }')
    expect((await run(rig.root, {}, ...asked, ...data)).notes).not.toMatch(/sandbox/)
  }))

test('never for an empty folder, nor for a lake of a real provider', async ({ root }) => {
  for (const name of ['none', 'empty']) {
    if (name === 'empty') mkdirSync(join(root, name))
    const told = await run(root, {}, ...asked, '--data', name)
    expect(told).toMatchObject({ code: 2, message: expect.stringContaining('PITLAKE_METRICS_URL'), notes: '' })
  }
  expect(readdirSync(root)).toEqual(['empty'])
  expect(readdirSync(join(root, 'empty'))).toEqual([])
  const data = join(root, 'real')
  const ledger = await Ledger.open(data)
  const provider = { metrics: 'https://api.example', synthetic: false }
  await commit(ledger, { ...draftOf(data, 1), provider }, commitDeps())
  ledger.close()
  const told = await run(root, {}, ...asked, '--data', 'real')
  expect(told).toMatchObject({ code: 2, message: expect.stringContaining('PITLAKE_METRICS_URL'), notes: '' })
})
