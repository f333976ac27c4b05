import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { openHooks } from '../../src/interfaces/commands/hooks.ts'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { listViolations } from '../../src/lake/ledger/violations.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { tryLock } from '../../src/lake/store/lock.ts'
import { commitDeps, draftOf, violationRow } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { partOf } from '../helpers/part-of.ts'

const violation = violationRow(0, 0)

test('only one of two jobs that end at once reports a new violation', async ({ root: home }) => {
  writeFileSync(join(home, 'pitlake.yaml'), 'hooks: { on_violation: cat >> told }\n')
  const data = join(home, 'data')
  const settings = resolveSettings({ flags: { config: undefined, data }, env: {}, cwd: home })
  const context = { settings, catalogue: loadCatalogue() }
  const input = { args: [], options: { config: undefined, data, memory: undefined, verbose: false } }
  let whileWaiting = async (): Promise<void> => undefined
  const deps = partOf<Deps>({
    now: Date.now,
    elapsed: () => 0,
    random: Math.random,
    cwd: home,
    isTerminal: false,
    env: { PATH: process.env['PATH'] },
    signal: new AbortController().signal,
    sleep: async () => {
      await whileWaiting()
      await setImmediate()
    },
  })
  const said: string[] = []
  using ledger = await Ledger.open(data)
  await commit(ledger, { ...draftOf(data, 0), add: [] }, commitDeps())
  const hooks = await openHooks({ ...input, ...context, ...deps }, 'fetch', (words) => void said.push(words))
  await commit(ledger, { ...draftOf(data, 1), add: [], violations: [violation] }, commitDeps())
  const [{ id } = { id: '' }] = listViolations(ledger, { paths: null, assets: null })
  const other = await tryLock(data, 'alarms', { pid: 1, host: 'h', command: 'registry sync', since: 0 })
  whileWaiting = async () => {
    writeFileSync(inLake(data, places.alarms), JSON.stringify({ violations: [id], stale: [] }))
    await other?.release()
    whileWaiting = async () => undefined
  }
  hooks?.look()
  await hooks?.idle()
  await other?.release()
  expect([said, existsSync(join(home, 'told'))]).toEqual([[], false])
  const second = { ...violation, offered: '3' }
  await commit(ledger, { ...draftOf(data, 2), add: [], violations: [second] }, commitDeps())
  hooks?.look()
  await hooks?.idle()
  expect(said).toEqual([])
  expect(JSON.parse(readFileSync(join(home, 'told'), 'utf8'))).toMatchObject({ new: 1, open: 2 })
})
