import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Ended, pitlake } from '../helpers/command.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'
import { leaping } from '../helpers/leaping.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
/** Of one day, in two series: `rewritten` differs upstream. */
const t = now - (now % day) - 4 * day
const rewritten = [`rewrite@supply/*:asset=BTC,t=${t},v=7`, `rewrite@supply/*:asset=ETH,t=${t},v=8`]
const select = '--assets BTC,ETH --paths supply/current_pit --since 2026-02-20'

/** What a command prints, line by line, without what differs from run to run. */
interface Said {
  readonly code: number
  readonly out: readonly string[]
  readonly notes: readonly string[]
  readonly message: string
}

interface Desk {
  readonly clock: { now: number }
  readonly faults: (...texts: readonly string[]) => void
  /** Runs a command line, a minute after the one before. */
  readonly run: (line: string) => Promise<Said>
  /** The lines of a file that a command wrote. */
  readonly file: (name: string) => readonly string[]
}

async function atDesk(work: (desk: Desk) => Promise<void>): Promise<void> {
  await withRig(now, async (rig) => {
    using cwdFolder = temporaryFolder('words')
    const cwd = cwdFolder.path
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: rig.root }
    const linesOf = (text: string): readonly string[] =>
      text
        .replaceAll(rig.root, 'LAKE')
        .replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, 'URL')
        .replaceAll(/(\d\d:\d\d):\d\d\.\d{3}Z/g, '$1')
        .replaceAll(/\d{8}t\d{9}z-\d+/g, 'RUN')
        .replaceAll(/[\d.]+ k?B/g, 'SIZE')
        .replaceAll(/\d+\/min/g, 'RATE')
        // Where a machine is slow, progress is told in between.
        .replaceAll(/^\d+\/\d+ series (?!.* committed).*\n/gm, '')
        .split('\n')
        .map((line) => line.trimEnd())
    const run = async (line: string): Promise<Said> => {
      rig.clock.now += 60
      const world = leaping(() => rig.clock.now)
      const { code, out, notes, message }: Ended = await pitlake(cwd, line.split(' '), env, world)
      return { code, out: linesOf(out), notes: linesOf(notes), message }
    }
    await work({ ...rig, run, file: (name) => linesOf(readFileSync(join(cwd, name), 'utf8')) })
  })
}

/** The lines of a text that `test/golden/words` holds. */
const golden = new Map(
  readFileSync(new URL('../golden/words/said.txt', import.meta.url), 'utf8')
    .split(/^=== /m)
    .slice(1)
    .map((section) => section.split('\n'))
    .map(([name = '', ...lines]): [string, readonly string[]] => [name, lines]),
)
const lines = (name: string): readonly string[] => golden.get(name) ?? [`no text ${name}`]

/** What stands under a name was said, and its notes. */
const said = (name: string, { notes = '', message = '', code = 0 } = {}) => ({
  code,
  out: lines(name),
  notes: notes === '' ? [''] : lines(notes),
  message,
})
const told = (out: string) => ({ code: 0, out: [out, ''], notes: [''], message: '' })

/** A window that was answered by no JSON is told with its series and its range. */
async function expectFailure(run: Desk['run'], faults: Desk['faults']): Promise<void> {
  faults('html@supply/*:asset=BTC', ...rewritten)
  const failing = JSON.parse((await run('verify --all --json')).out.join('')) as { failures: unknown }
  const window = { since: '2026-02-20T00:00:00Z', until: '2026-03-04T00:00:00Z' }
  const series = 'supply/current_pit|BTC|24h|native'
  const named = expect.stringContaining(series) as string
  const reason = expect.stringMatching(/html/i) as string
  expect(failing.failures).toEqual([{ series: named, ...window, refused: false, reason }])
}

/** The two of them are listed, and acknowledged one after the other. */
async function expectAccepted(run: Desk['run']): Promise<void> {
  expect(await run('violations list')).toEqual(said('violations, open'))
  expect(await run('violations acknowledge 0e9cf76fc5b2 --why mended')).toEqual(told('1 acknowledged (version 5)'))
  const both = 'violations acknowledge 0e9cf76fc5b2 c310d3c5122b --why both'
  expect(await run(both)).toEqual(told('1 acknowledged (version 6), 1 had been before'))
  expect(await run(both)).toEqual(told('0 acknowledged (version 6), 2 had been before'))
  expect(await run('violations list')).toEqual(told('0 open, 2 acknowledged'))
  expect(await run('violations list --all')).toEqual(said('violations, acknowledged'))
}

test('plan, fetch, verify and violations say what they found, line by line', async () =>
  atDesk(async ({ clock, faults, run, file }) => {
    const planned = await run(`plan ${select} --requests --max-requests 1`)
    expect(planned).toEqual(said('plan', { notes: 'plan, notes' }))
    expect(await run(`fetch ${select}`)).toEqual(said('fetch', { notes: 'fetch, notes' }))
    clock.now += day
    faults(...rewritten)
    const message =
      '2 stored values differ upstream; nothing stored was changed: send the report (--report FILE) to the provider, then pitlake violations acknowledge'
    const verified = await run('verify --all --report report.md')
    expect(verified).toEqual(said('verify', { code: 4, notes: 'verify, notes', message }))
    expect(file('report.md')).toEqual(lines('report'))
    await expectFailure(run, faults)
    faults(...rewritten)
    // Whatever is selected; metadata are known of one path, and are old after a week.
    const last = async (line: string) => (await run(line)).out.at(-2)
    expect(await last('plan --assets BTC --since 2026-03-01 --offline')).toBe('metadata   of 1 paths, 0 requested now')
    clock.now += 7 * day
    expect(await last(`plan ${select}`)).toBe('metadata   of 1 paths, 1 requested now')
    expect(await last('plan')).toBe('metadata   of 1 paths, 0 requested now')
    clock.now -= 7 * day
    await expectAccepted(run)
  }))

test('status, audit, vacuum and doctor say how the lake stands, line by line', async () =>
  atDesk(async ({ clock, faults, run }) => {
    expect(await run(`fetch ${select} --max-requests 1`)).toMatchObject({
      code: 5,
      message: 'stopped early, because --max-requests allows no more requests; run the same command again',
    })
    expect(await run('status')).toEqual(said('status, half asked'))
    clock.now += day
    faults(...rewritten)
    await run('verify --all')
    expect(await run('status')).toEqual(said('status, verified'))
    expect(await run('status --check')).toEqual(said('status --check', { code: 4 }))
    expect([...(await run('vacuum --keep 0s')).out.slice(0, 2), '']).toEqual(lines('vacuum'))
    const [rules = ''] = lines('audit')
    expect(await run('audit availability')).toEqual(told(rules))
    expect(await run('audit availability --all')).toEqual(said('audit'))
    expect((await run('audit availability --all --paths indicators/*')).out[0]).toBe(
      rules.replace('1 rule:', '0 rules:'),
    )
    expect(await run('doctor')).toEqual(said('doctor'))
  }))
