import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { alarmReason, refusalWords, withdrawnReason } from '../../src/lake/ledger/refusals.ts'
import { lockJob } from '../../src/lake/store/lock.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { commitDeps, coverageRow, draftOf } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'

const day = 86_400

/** A lake of one series with the point of the second day, looked at half a day after the point of the third was due. */
async function withLake(work: (look: (line: string) => Promise<Ended>, data: string) => Promise<void>): Promise<void> {
  await inFolder(async (root) => {
    const data = join(root, 'data')
    using ledger = await Ledger.open(data)
    await commit(ledger, draftOf(data, 1), commitDeps())
    ledger.close()
    // What goes on until it is told to stop is told so at once.
    const world = { now: () => 5.5 * day * 1000, signal: AbortSignal.abort() }
    await work(async (line) => await pitlake(root, line.split(' '), {}, world), data)
  })
}

test('status --check judges by the limits that flags give: up to them it is trusted, beyond them stale', () =>
  withLake(async (look) => {
    const check = async (flags = '') => {
      const { code, out } = await look(`status --check${flags}`)
      return `${code} ${out
        .split(';')[0]
        ?.split(/,| \(since/)[0]
        ?.trim()}`
    }
    expect(await check()).toBe('6 stale: 1 series has points due that no fetch requested')
    expect(await check(' --max-late 60h')).toBe('0 trusted: version 1')
    expect(await check(' --max-late 59h')).toBe(
      '6 stale: 1 series lacks a point that is later than your limit allows: due for up to 3 days',
    )
    expect((await look('status --check --max-late soon')).code).toBe(2)
    // One line asks for no more than it says: rules are not held against arrivals for it.
    const rules = async (flags: string): Promise<unknown> =>
      (JSON.parse((await look(`status --json${flags}`)).out) as { rules: unknown }).rules
    expect(await rules('')).toEqual({ contradicted: 0, imprecise: 0, imprecise_points: 0 })
    expect(await rules(' --check')).toBeNull()
  }))

test('status gives scripts the names of its limits, and people a note that data are synthetic', () =>
  withLake(async (look) => {
    const told: unknown = JSON.parse((await look('status --json')).out)
    expect(told).toMatchObject({ provider: 'sandbox:1', synthetic: true, version: 1, series: 1, points: 1, files: 1 })
    expect(told).toMatchObject({
      gaps: 0,
      violations: 0,
      bytes: expect.any(Number),
      windows: { covered: 1, empty: 0, unsupported: 0, failed: 0 },
      newest: '1970-01-02T00:00:00Z',
      registry: { first_snapshot: null, last_snapshot: null, epoch: 0, feed_at: null, records: {} },
    })
    expect((await look('status')).out).toMatch(/SYNTHETIC DATA/)
    expect(await look('status --html no/such/folder/page.html')).toMatchObject({ code: 2 })
  }))

test('status says what is refused, what was withdrawn, and which job is at work', () =>
  withLake(async (look, data) => {
    const ledger = await Ledger.open(data)
    const plan = refusalWords('forbidden', 'not in the plan')
    const over = refusalWords('gone', 'over')
    const coverage = [
      coverageRow(1, 2 * day, 3 * day, { state: 'failed', reason: alarmReason(2 * day, plan) }),
      coverageRow(2, 2 * day, 3 * day, { state: 'unsupported', reason: withdrawnReason(2 * day, over) }),
      coverageRow(3, 2 * day, 3 * day, { state: 'failed', reason: 'html' }),
    ]
    const { series = [] } = draftOf(data, 2)
    const provider = { metrics: 'sandbox:1', synthetic: true }
    const all = [...series, ...(draftOf(data, 3).series ?? [])]
    await commit(ledger, { job: 'fetch', run: 'r', provider, series: all, coverage }, commitDeps())
    ledger.close()
    const lock = await lockJob(data, 'metrics', { pid: 1, host: 'h', command: 'pitlake fetch', since: 1 })
    const { out } = await look('status --json')
    const words = await look('status')
    await lock.release()
    expect(JSON.parse(out)).toMatchObject({
      refused: { series: 1, windows: 1, since: '1970-01-03T00:00:00Z', words: plan, withdrawn: 1 },
      running: ['metrics'],
    })
    expect(words.out).toMatch(/^at work {6}metrics$/m)
    expect((await look('status')).out).not.toContain('at work')
  }))

test('a flag without effect next to a second one is refused, and so is an unknown name', () =>
  withLake(async (look) => {
    for (const flag of ['--offline', '--requests', '--gaps', '--max-requests 3'])
      expect(await look(`plan --due ${flag}`)).toMatchObject({
        code: 2,
        message: expect.stringContaining(`got ${flag.split(' ')[0]}`),
      })
    for (const flag of ['--check', '--json', '--html x.html', '--metrics x'])
      expect(await look(`status --listen 127.0.0.1:0 ${flag}`)).toMatchObject({
        code: 2,
        message: expect.stringContaining(`got ${flag.split(' ')[0]}`),
      })
    expect(await look('verify --resources issuer')).toMatchObject({
      code: 2,
      message: expect.stringMatching(/got issuer; did you mean .issuers.\?/),
    })
  }))
