// @module-tag full
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { withRig } from '../helpers/fetching.ts'
import { heldPoints } from '../helpers/ledgers.ts'
import { withProvider } from '../helpers/provider.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const selection = { assets: ['BTC'], paths: [count, 'supply/current_pit'], since: start }

test('vacuum, compact and stamp say that the last commit lies ahead of their clock', async () =>
  withRig(start + 20 * day + 7200, async ({ root, clock, fetch }) => {
    await fetch(selection)
    await writeFile(join(root, 'q.sql'), 'SELECT 1 AS one')
    for (const argv of [['vacuum'], ['compact'], ['stamp', join(root, 'q.sql'), '--out', join(root, 'r.parquet')]]) {
      for (const off of [-day, 60]) {
        const world = { now: () => (clock.now + off) * 1000 }
        const { notes } = await pitlake(root, [...argv, '--data', root], {}, world)
        expect([argv[0], off, notes.includes('the clock of this machine says')]).toEqual([argv[0], off, off < 0])
      }
    }
  }))

test('an answer dated in the future does not count as proof that points came late', async () =>
  withProvider(start + 10 * day + 7200, async (own) => {
    own.answer((path, query) => {
      if (path === 'assets') return { status: 404, headers: { date: '' } }
      const days = Array.from({ length: Math.floor((own.clock.now - start) / day) }, (_, n) => start + n * day)
      const asked = days.filter((t) => t >= Number(query.get('s')) && t < Number(query.get('u')))
      // It tells no time.
      return { body: asked.map((t) => ({ t, v: t })), headers: { date: '' } }
    })
    const one = { assets: ['BTC'], paths: [count], since: start }
    const ahead = (): number => (own.clock.now + 50 * 365 * day) * 1000 + performance.now()
    const far = { now: ahead, nowMicros: () => Math.floor(ahead() * 1000) }
    await own.fetch(one, { deps: far, input: { now: Math.floor(ahead() / 1000) } })
    own.clock.now += 3 * day
    // Before anybody has mended it.
    expect(await own.fetch(one)).toMatchObject({ points_added: 3 })
    const bases = await heldPoints(own.root, 'DISTINCT basis')
    expect(bases.map(({ basis }) => basis)).not.toContain('observed')
  }))
