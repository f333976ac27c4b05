// @module-tag full
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Ended, pitlake } from '../helpers/command.ts'
import { withRig } from '../helpers/fetching.ts'
import { freshFolder } from '../helpers/scratch.ts'
import { makeViews } from '../helpers/views.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 10, 12) / 1000
const supply = { assets: ['BTC'], paths: ['supply/current_pit'], intervals: ['24h'], since: now - 9 * day }

let home = ''
freshFolder('pages', (path) => (home = path))

/** A copy or a page behind the lake, as `status --json` names it. */
interface Behind {
  readonly version: number
  readonly newest: number
  readonly words: string
  readonly remedy: string
}

test('status and doctor name pages that are older than the lake, with the command that writes them again', async () =>
  withRig(now, async (rig) => {
    const run = async (...argv: string[]): Promise<Ended> =>
      await pitlake(
        home,
        [...argv, '--data', rig.root],
        {},
        { now: () => rig.clock.now * 1000, sleep: async (ms) => await setTimeout(ms) },
      )
    const behind = async (): Promise<readonly Behind[]> =>
      (JSON.parse((await run('status', '--json')).out) as { behind: readonly Behind[] }).behind
    const fetched = async (): Promise<number> => {
      const { version } = await rig.fetch(supply)
      await makeViews(rig.root)
      return version
    }
    const first = await fetched()
    const page = join(home, 'page.html')
    const folder = join(home, 'out')
    const limited = ['serve', '--export', join(home, 'old'), '--instants', '2', '--as-of', '2026-03-05']
    for (const argv of [['status', '--html', page], ['serve', '--export', folder, '--instants', '2'], limited])
      expect(await run(...argv)).toMatchObject({ code: 0, message: '' })
    expect(await behind()).toEqual([])

    rig.clock.now += day
    const newest = await fetched()
    const lags = await behind()
    expect(lags.map(({ words, version, newest: of }) => [words, version, of])).toEqual([
      [expect.stringContaining(`the status page ${page}`), first, newest],
      [expect.stringContaining(`the exported page ${folder}`), first, newest],
    ])
    expect((await run('status')).out.replaceAll(/\s+/g, ' ')).toContain(`pitlake status --html ${page}`)
    const doctor = JSON.parse((await run('doctor', '--json')).out) as { findings: readonly { kind: string }[] }
    expect(doctor.findings.filter(({ kind }) => kind === 'copy_behind')).toHaveLength(2)
    for (const { remedy } of lags) expect(await run(...remedy.split(' ').slice(1))).toMatchObject({ code: 0 })
    expect(await behind()).toEqual([])
    // The page itself does not say that it is old.
    expect(readFileSync(page, 'utf8')).not.toContain('the facts of the status page')

    rig.clock.now += day
    await fetched()
    rmSync(page)
    rmSync(folder, { recursive: true })
    expect(await behind()).toEqual([])
  }))
