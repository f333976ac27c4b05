// @module-tag full
import { rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { formatInstant, type Instant } from '../../src/base/time.ts'
import type { ReasonKind } from '../../src/interfaces/report/trust.ts'
import { lookAtAlarms } from '../helpers/alarms.ts'
import { pitlake } from '../helpers/command.ts'
import { inWindow } from '../helpers/days.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { rounds } from '../helpers/tiers.ts'

const day = 86_400
const hour = 3600
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const selection = { assets: ['BTC', 'ETH'], paths: [count], intervals: ['1h', '24h'], since: start }
/** Days of the simulation. */
const days = rounds('PITLAKE_ALARM_DAYS', 60, 60)
const looks = rounds('PITLAKE_ALARM_LOOKS', 2, 2)

/** Points that a provider shows of all that there are. */
type Shown = (points: readonly Point[]) => readonly Point[]

/** A point of the simulation. */
interface Point {
  readonly t: Instant
  readonly v: number
}

/** Mornings on which something is wrong. */
interface Trouble {
  /** Its first morning, and how many there are. */
  readonly from: number
  readonly mornings: number
  readonly kind: ReasonKind
  /** Exit code of `status --check` from its first morning to the first good one. */
  readonly code: number
  /** What the provider answers to everything; null: nobody answers. */
  readonly answer?: unknown
  /** What it shows of its points. */
  readonly shows?: Shown
  /** How often hooks report it, by what they call it. */
  readonly reports: number
  readonly name: RegExp
}

const quotaSpent = { status: 429, text: '{}', headers: { 'x-quota-daily-remaining': '0' } }
const single = { mornings: 1, code: 6, reports: 1 }
/** Both series of both intervals lack their last five points. */
const lost = { kind: 'violations', code: 4, reports: 20, name: /^[0-9a-f]{12}$/ } as const

const troubles: readonly Trouble[] = [
  { ...single, from: days - 46, kind: 'provider', answer: null, name: /^last run: provider$/ },
  { ...single, from: days - 43, kind: 'key', answer: { status: 401, text: '{}' }, name: /^last run: key$/ },
  { ...single, from: days - 40, kind: 'quota', answer: quotaSpent, name: /^last run: quota$/ },
  { ...lost, from: days - 37, mornings: 1, shows: () => [] },
  { ...lost, from: days - 34, mornings: 3, shows: (points) => points.slice(0, points.length / 2) },
]
/** User data come every other morning, but not on these: the usual pause and half of it later they are missed. */
const userDataStop = { from: days - 28, missedFrom: days - 26, until: days - 20 }
const silentFrom = days - 7

/** Points by the day and by the hour; nothing of ETH after `silent`. */
function answerDaily(own: OwnProvider, state: { silent: number; trouble: Trouble | undefined }): void {
  own.answer((path, query) => {
    if (state.trouble?.answer !== undefined) return state.trouble.answer
    if (path === 'assets') return { status: 404 }
    const length = query.get('i') === '1h' ? hour : day
    const until = Math.min(own.clock.now, query.get('a') === 'ETH' ? state.silent : Infinity)
    const points = Array.from({ length: Math.floor((until - start) / length) }, (_, n) => ({
      t: start + n * length,
      v: n,
    }))
    return inWindow(query, state.trouble?.shows?.(points) ?? points)
  })
}

/** Imports the user's own value of yesterday. */
async function importYesterday({ root, clock }: OwnProvider): Promise<void> {
  const file = join(root, '..', `${basename(root)}.csv`)
  const t = clock.now - (clock.now % day) - day
  writeFileSync(file, `t,v\n${formatInstant(t)},${t / day}\n`)
  try {
    const argv = [
      'import',
      file,
      '--as',
      'signal',
      '--asset',
      '=BTC',
      '--value',
      'v',
      '--interval',
      '24h',
      '--available',
      'end',
      '--data',
      root,
    ]
    expect(await pitlake(root, argv, {}, { now: () => clock.now * 1000 })).toMatchObject({ code: 0, message: '' })
  } finally {
    rmSync(file)
  }
}

test(
  'a lake fetched at 06:15 alarms on no healthy day, and once for each trouble, in time and until it is over',
  async () =>
    withProvider(start + 10 * day + 6.25 * hour, async (own) => {
      const state = { silent: Infinity, trouble: undefined as Trouble | undefined }
      answerDaily(own, state)
      const reported: (readonly [day: number, name: string])[] = []
      for (let n = 0; n < days; n++) {
        state.trouble = troubles.find(({ from, mornings }) => n >= from && n < from + mornings)
        const { trouble } = state
        if (n === silentFrom) state.silent = own.clock.now
        await (trouble?.answer === null ? own.away(async () => await own.fetch(selection)) : own.fetch(selection))
        const hasUserData = n < userDataStop.from || n >= userDataStop.until
        if (hasUserData && n % 2 === 0) await importYesterday(own)
        const isMissed = n >= userDataStop.missedFrom && n < userDataStop.until
        const isHealthy = (n <= userDataStop.from || n >= userDataStop.until) && n < silentFrom
        const morning = own.clock.now
        // Of a quiet day the end, shortly before the next run, is where a lake looks oldest.
        for (let look = isHealthy && !trouble ? looks - 1 : 0; look < looks; look++) {
          own.clock.now = Math.floor(morning + 60 + (look * (day - 120)) / (looks - 1))
          const { code, lines, ok, kinds, told } = await lookAtAlarms(own)
          reported.push(...told.map((name) => [n, name] as const))
          expect([n, look, ok, kinds.length > 0], lines.join('\n')).toEqual([n, look, code === 0, code !== 0])
          if (trouble)
            expect([n, look, code, kinds]).toEqual([n, look, trouble.code, expect.arrayContaining([trouble.kind])])
          else if (isMissed) expect([n, look, code, kinds]).toEqual([n, look, 6, ['user_data']])
          else if (isHealthy) expect([n, look, code, lines]).toEqual([n, look, 0, lines])
        }
        own.clock.now = morning + day
      }
      for (const { from, reports, name, kind } of troubles) {
        const own = reported.filter(([n, text]) => n === from && name.test(text))
        expect([kind, from, own.length]).toEqual([kind, from, reports])
      }
      const isInTrouble = (n: number): boolean =>
        troubles.some(({ from, mornings }) => n >= from && n < from + mornings)
      const others = reported.filter(([n]) => !isInTrouble(n))
      const names = [`${count} 1h`, `${count} 24h`, 'own/signal 24h']
      expect(others.map(([, name]) => name).toSorted()).toEqual(names)
      // In time: a daily point is tolerated for three days after it is due, an hourly one for two, user data for three.
      for (const [n, name] of others) {
        const begins = name.startsWith('own/') ? userDataStop.from : silentFrom
        expect(n - begins, name).toBeLessThanOrEqual(4)
      }
      expect((await lookAtAlarms(own)).lines.join('\n')).toMatch(/no new point for longer than tolerated/)
    }),
  900_000,
)

/** Series enough that a bad day of all is an incident. */
const wide = {
  assets: ['BTC', 'ETH'],
  paths: ['addresses/*_count_pit', 'supply/*'],
  intervals: ['24h'],
  since: start,
}

test.each<readonly [string, unknown, Shown]>([
  ['answers of []', undefined, () => []],
  ['answers without content', { status: 204, text: '' }, () => []],
  ['a lost newer half', undefined, (points) => points.slice(0, 10)],
])('an incident by %s is named each day until the data come back', async (_, answer, shows) =>
  withProvider(start + 20 * day + 6.25 * hour, async (own) => {
    const trouble = { from: 1, mornings: 3, kind: 'incidents', code: 4, reports: 1, name: /^metrics-/ } as const
    const state = { silent: Infinity, trouble: undefined as Trouble | undefined }
    answerDaily(own, state)
    await own.fetch(wide)
    for (let n = 0; n < 6; n++) {
      own.clock.now += day
      const isBad = n >= trouble.from && n < trouble.from + trouble.mornings
      state.trouble = isBad ? { ...trouble, answer, shows } : undefined
      await own.fetch(wide)
      for (const pause of [60, 23 * hour]) {
        own.clock.now += pause
        const { code, kinds, ok, told } = await lookAtAlarms(own)
        const names = told.filter((name) => trouble.name.test(name))
        const isNew = n === trouble.from && pause === 60
        expect([n, pause, code, ok, kinds.includes('incidents'), names.length]).toEqual([
          n,
          pause,
          isBad ? 4 : 0,
          !isBad,
          isBad,
          isNew ? 1 : 0,
        ])
        own.clock.now -= pause
      }
    }
  }),
)

test.each([
  ['no alarm within the schedule that the configuration names', 3 * day, 0],
  ['an alarm once it is exceeded', 12 * hour, 6],
])('a lake without a rhythm gives %s', async (_, schedule, code) =>
  withProvider(start + 10 * day + 6.25 * hour, async (own) => {
    answerDaily(own, { silent: Infinity, trouble: undefined })
    await own.fetch(selection)
    own.clock.now += 60
    expect((await lookAtAlarms(own, schedule)).code).toBe(0)
    own.clock.now += 2 * day
    expect(await lookAtAlarms(own, schedule)).toMatchObject({ code, ok: code === 0 })
  }),
)
