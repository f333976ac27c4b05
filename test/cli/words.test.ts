import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Ended, pitlake } from '../helpers/command.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'
import { leaping } from '../helpers/leaping.ts'
import { ownFolder } from '../helpers/own-folder.ts'

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
    using cwdFolder = ownFolder('words')
    const cwd = cwdFolder.path
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: rig.root }
    const lines = (text: string): readonly string[] =>
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
      return { code, out: lines(out), notes: lines(notes), message }
    }
    await work({ ...rig, run, file: (name) => lines(readFileSync(join(cwd, name), 'utf8')) })
  })
}

/** Lines of a text that is written below. */
const text = (lines: string): readonly string[] =>
  lines.replace(/^\n/, '').replaceAll(/^ {6}/gm, '').trimEnd().split('\n')

const said = (out: string, { notes = '', message = '', code = 0 } = {}) => ({
  code,
  out: out === '' ? [''] : [...text(out), ''],
  notes: notes === '' ? [''] : [...text(notes), ''],
  message,
})

const oneCurrency =
  'note: supply/current_pit is selected in native only; price_usd also needs usd (--currencies native,usd)'

/** What a report of two changed values says. */
function expectReport(report: readonly string[]): void {
  const section = (asset: string, n: number, stored: string, offered: string): string => `
      ## supply/current_pit ${asset} 24h native

      - address: \`URL/v1/metrics/supply/current_pit?a=${asset}&s=1771545600&u=1772582400&i=24h&c=native&f=json\`
      - asked at 2026-03-05T12:03, request \`RUN-verify-00000${n}\`

      | t | what | stored | offered | stored at | stored by request |
      | --- | --- | --- | --- | --- | --- |
      | 2026-02-28T00:00:00Z | changed | \`${stored}\` | \`${offered}\` | 2026-03-04T12:02 | RUN-00000${n} |
`
  expect(report).toEqual([
    ...text(`
      # Verification of stored history

      - provider: sandbox:7
      - run: RUN-verify, lake version 4
      - windows compared: 2 of 2
      - changed: 2
      - vanished: 0
      - null filled: 0
      - computed_at changed: 0
      - revised: 0
      - appended: 0
      - identical: 0

      All times are UTC. Values are compared bit for bit. \`stored\` is what an earlier answer said, \`offered\` what the
      same address says now; nothing stored was changed.
${section('BTC', 1, '20004321.875', '7.0')}${section('ETH', 2, '121155771.90311731', '8.0')}`),
    '',
  ])
}

/** A window that was answered by no JSON is told with its series and its range. */
async function expectFailure(run: Desk['run'], faults: Desk['faults']): Promise<void> {
  faults('html@supply/*:asset=BTC', ...rewritten)
  const failing = JSON.parse((await run('verify --all --json')).out.join('')) as { failures: unknown }
  const window = { since: '2026-02-20T00:00:00Z', until: '2026-03-04T00:00:00Z' }
  const series = 'supply/current_pit|BTC|24h|native'
  expect(failing.failures).toEqual([
    {
      series: expect.stringContaining(series) as string,
      ...window,
      reason: expect.stringMatching(/html/i) as string,
    },
  ])
}

/** The two of them are listed, and accepted one after the other. */
async function expectAccepted(run: Desk['run']): Promise<void> {
  const header = `
      id            kind     series                             t                     stored              offered  status`
  const btc = `0e9cf76fc5b2  changed  supply/current_pit BTC 24h native  2026-02-28T00:00:00Z  20004321.875        7.0`
  const eth = `c310d3c5122b  changed  supply/current_pit ETH 24h native  2026-02-28T00:00:00Z  121155771.90311731  8.0`
  const rule =
    '------------  -------  ---------------------------------  --------------------  ------------------  -------'
  expect(await run('violations list')).toEqual(
    said(
      `${header}\n${rule}  ---------------------\n${btc}      open since 2026-03-05\n${eth}      open since 2026-03-05\n2 not accepted, 0 accepted`,
    ),
  )
  expect(await run('violations accept 0e9cf76fc5b2 --why mended')).toEqual(said('1 accepted (version 5)'))
  const both = 'violations accept 0e9cf76fc5b2 c310d3c5122b --why both'
  expect(await run(both)).toEqual(said('1 accepted (version 6), 1 had been before'))
  expect(await run(both)).toEqual(said('0 accepted (version 6), 2 had been before'))
  expect(await run('violations list')).toEqual(said('0 not accepted, 2 accepted'))
  expect(await run('violations list --all')).toEqual(
    said(
      `${header}\n${rule}  ---------------------------\n${btc}      accepted 2026-03-05: mended\n${eth}      accepted 2026-03-05: both\n0 not accepted, 2 accepted`,
    ),
  )
}

test('plan, fetch, verify and violations say what they found, line by line', async () =>
  atDesk(async ({ clock, faults, run, file }) => {
    expect(await run(`plan ${select} --requests --max-requests 1`)).toEqual(
      said(
        `
      endpoint            asset  interval  dimensions  range                     points  credits
      ------------------  -----  --------  ----------  ------------------------  ------  -------
      supply/current_pit  BTC    24h       native      2026-02-20 .. 2026-03-04      12        1
      supply/current_pit  ETH    24h       native      2026-02-20 .. 2026-03-04      12        2

      series     2
      windows    2
      requests   2
      credits    3
      points     about 24
      bytes      about SIZE
      duration   about 1 s
      metadata   of 1 paths, 1 asked for now`,
        { notes: `note: --max-requests 1 stops after 1 of 2 requests\n${oneCurrency}` },
      ),
    )
    const plan = 'plan: 2 requests, 3 credits, about 24 points (SIZE), about 1 s'
    expect(await run(`fetch ${select}`)).toEqual(
      said(
        `
      version      3
      requests     2
      points       24 added in 2 files
      windows      2 covered, 0 empty, 0 unsupported, 0 failed
      violations   0`,
        {
          notes: `${plan}\n${oneCurrency}\n2/2 series  24 points  2 requests, RATE  3 credits  version 2 committed`,
        },
      ),
    )
    clock.now += day
    faults(...rewritten)
    expect(await run('verify --all --report report.md')).toEqual(
      said(
        `
      files      2 read in full, SIZE, all sound
      contents   24 points of 2 series, 0 known gaps
      windows    2 of 2 compared, 2 held
      results    2 changed
      asked      2 requests, 3 credits

      changed    supply/current_pit BTC 24h native, t 2026-02-28T00:00:00Z
                 stored 20004321.875 at 2026-03-04T12:02
                 offered 7.0 at 2026-03-05T12:03
                 request RUN-verify-000001

      changed    supply/current_pit ETH 24h native, t 2026-02-28T00:00:00Z
                 stored 121155771.90311731 at 2026-03-04T12:02
                 offered 8.0 at 2026-03-05T12:03
                 request RUN-verify-000002`,
        {
          code: 4,
          notes: `
      reading every file of the lake
      ${plan}
      note: asks 2 of 2 windows of 1 endpoints again within no budget (--all)
      2/2 series  0 points  2 requests, RATE  3 credits  version 4 committed`,
          message:
            '2 stored values differ upstream; nothing stored was changed: send the report (--report FILE) to the provider, then pitlake violations accept',
        },
      ),
    )
    expectReport(file('report.md'))
    await expectFailure(run, faults)
    faults(...rewritten)
    // Whatever is selected; metadata are known of one path, and are old after a week.
    const last = async (line: string) => (await run(line)).out.at(-2)
    expect(await last('plan --assets BTC --since 2026-03-01 --offline')).toBe('metadata   of 1 paths, 0 asked for now')
    clock.now += 7 * day
    expect(await last(`plan ${select}`)).toBe('metadata   of 1 paths, 1 asked for now')
    expect(await last('plan')).toBe('metadata   of 1 paths, 0 asked for now')
    clock.now -= 7 * day
    await expectAccepted(run)
  }))

/** What is said of a lake in which one value differs. */
async function expectChecks(run: Desk['run']): Promise<void> {
  const differs = 'integrity: 1 stored value differs upstream; both are kept, the stored one holds'
  expect(await run('status --check')).toEqual(
    said(
      `${differs} (since 2026-03-05T12:03Z); pitlake violations list
stale: 1 series has points due that nobody asked for, for up to 12 h (since 2026-03-05T00:30Z); pitlake fetch
look: 1 series has windows that a run planned and did not ask (since 2026-03-04T12:01Z); pitlake fetch`,
      { code: 4 },
    ),
  )
  expect((await run('vacuum --keep 0s')).out.slice(0, 2)).toEqual(
    text(`
      superseded data files     0 files, 0 B
      folded journal entries    0 files, 0 B`).map((line) => line.replaceAll('0 B', 'SIZE')),
  )
  const rules = '1 rules: 0 disproved, 0 imprecise, 0 unproven'
  expect(await run('audit availability')).toEqual(said(rules))
  expect(await run('audit availability --all')).toEqual(
    said(`
      ${rules}

      verdict  metric              interval  known  late  p50         p95         p99         max         rule
      -------  ------------------  --------  -----  ----  ----------  ----------  ----------  ----------  ---------------------
      kept     supply/current_pit  24h          12     0  5 min 32 s  9 min 50 s  9 min 50 s  9 min 50 s  end of interval + 30m`),
  )
  expect((await run('audit availability --all --paths indicators/*')).out[0]).toBe(rules.replace('1', '0'))
  expect(await run('doctor')).toEqual(
    said(`
      checked   version 4, 1 files, SIZE, every byte read
      healthy   nothing is wrong`),
  )
}

test('status, audit, vacuum and doctor say how the lake stands, line by line', async () =>
  atDesk(async ({ clock, faults, run }) => {
    expect(await run(`fetch ${select} --max-requests 1`)).toMatchObject({
      code: 5,
      message: 'stopped early (max_requests); run the same command again',
    })
    const synthetic = `
                   - the data are synthetic: for trying out, not for research`
    expect(await run('status')).toEqual(
      said(`
      lake         LAKE   SYNTHETIC DATA
      provider     sandbox:7
      version      3 of 2026-03-04 12:01 UTC
      trust        look first
                   - 1 series has windows that a run planned and did not ask: pitlake
                     fetch${synthetic}
                   - nothing was verified yet: pitlake verify
      coverage     100 % of 12 due points
      fresh        1 series, 0 awaited, 0 behind, 0 stopped
      newest       2026-03-03T00:00:00Z
      gaps         0 windows, 0 awaited
      windows      1 covered, 0 empty, 0 unsupported, 0 failed, 1 not asked
      violations   0
      verified     nothing yet
      requests     2, 1 credits; last 24 h 2, 1 credits
      rate         busiest minute 1 of 600 allowed
      registry     no snapshot yet
      stored       12 points, 2 series, 1 file, SIZE`),
    )
    clock.now += day
    faults(...rewritten)
    await run('verify --all')
    expect(await run('status')).toEqual(
      said(`
      lake         LAKE   SYNTHETIC DATA
      provider     sandbox:7
      version      4 of 2026-03-05 12:03 UTC
      trust        look first
                   - 1 stored value differs upstream; both are kept, the stored one
                     holds: pitlake violations list
                   - 1 series has windows that a run planned and did not ask: pitlake
                     fetch
                   - 1 series has points due that nobody asked for, for up to 12 h:
                     pitlake fetch${synthetic}
      coverage     92.3 % of 13 due points
      fresh        0 series, 0 awaited, 1 behind by up to 11 h 34 min, 0 stopped
      newest       2026-03-03T00:00:00Z
      gaps         0 windows, 0 awaited
      windows      1 covered, 0 empty, 0 unsupported, 0 failed, 1 not asked
      violations   1
      verified     0 % of what is held
      requests     3, 2 credits; last 24 h 1, 1 credits
      rate         busiest minute 1 of 600 allowed
      registry     no snapshot yet
      stored       12 points, 2 series, 1 file, SIZE`),
    )
    await expectChecks(run)
  }))
