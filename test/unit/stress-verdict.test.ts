import { expect, test } from 'vitest'
import {
  briefFigure,
  describeRun,
  isFallen,
  stressVerdict,
  longestSafeLag,
  movedShare,
  type StressRun,
} from '../../src/trust/results/stress-verdict.ts'

const lag = (seconds: number, falls: boolean): StressRun => ({
  kind: 'lag',
  name: `${seconds}s`,
  seconds,
  at: null,
  rows: 9,
  changed: 0,
  statistic: falls ? 0 : 2,
  before: 2,
  moved: falls ? -1 : 0,
  falls,
})

test('a statistic falls when it moves either way by more than its part of itself, or is no number any more', () => {
  expect([isFallen(1, 2, 0.5), isFallen(0.99, 2, 0.5), isFallen(3.01, 2, 0.5)]).toEqual([false, true, true])
  expect([isFallen(-1, -2, 0.5), isFallen(-0.9, -2, 0.5), isFallen(0, 0, 0), isFallen(1e-9, 0, 0.5)]).toEqual([
    false,
    true,
    false,
    true,
  ])
  expect([isFallen(null, 2, 100), isFallen(null, null, 0), isFallen(2, null, 1)]).toEqual([true, false, true])
})

test('the moved share of a statistic is relative to its size, whatever its sign', () => {
  expect([movedShare(1, 2), movedShare(-3, -2), movedShare(0, 0), movedShare(1, 0), movedShare(null, 1)]).toEqual([
    -0.5,
    -0.5,
    0,
    null,
    null,
  ])
  expect([briefFigure(0.123456), briefFigure(-12345.6), briefFigure(0)]).toEqual(['0.1235', '-12350', '0'])
})

test.each([
  [20, 30],
  [1, 30],
  [29, 30],
  [0, 60],
  [700, 1440],
])('the longest lag that is borne, %i minutes, is found below %i', async (minutes, first) => {
  const tried: number[] = []
  const falls = async (seconds: number): Promise<boolean> => (tried.push(seconds), seconds > minutes * 60)
  const borne = await longestSafeLag([lag(first * 60, true)], falls)
  expect(borne).toBeLessThanOrEqual(minutes * 60)
  expect(borne).toBeGreaterThanOrEqual(minutes * 60 - Math.max(60, minutes * 3))
  expect(tried.length).toBeLessThan(12)
})

test('the longest safe lag lies between tried lags, and is null if none of them fell', async () => {
  const never = async (): Promise<boolean> => Promise.reject(new Error('not asked'))
  expect(await longestSafeLag([lag(60, false), lag(120, true)], never)).toBe(60)
  expect(await longestSafeLag([lag(60, false)], never)).toBeNull()
  expect(
    await longestSafeLag(
      [
        { ...lag(60, true), kind: 'latency' },
        { ...lag(60, true), seconds: null },
      ],
      never,
    ),
  ).toBeNull()
})

test('only delays decide the verdict, which names the metric that moves the statistic', () => {
  const version: StressRun = { ...lag(0, true), kind: 'version', name: '3', seconds: null }
  expect(stressVerdict([lag(60, false), version], 2, null, [])).toEqual({ verdict: 'holds', reason: null })
  const shares = [{ metric: 'a/b', statistic: 0, moved: -1, share: 0.9 }]
  const words = (borne: number | null, own = shares): unknown =>
    stressVerdict([version, lag(90, true)], 2, borne, own).reason
  expect(words(1200)).toBe(
    'the statistic goes from 2 to 0 with points 90s later; it survives a delay of 20m and depends most on a/b',
  )
  expect(words(0)).toMatch(/; it survives a delay of less than a minute and depends most on a\/b$/)
  expect(words(null)).toMatch(/; it depends most on a\/b$/)
  expect(words(null, [])).toMatch(/ later$/)
  expect(stressVerdict([{ ...lag(90, true), statistic: null }], 2, null, []).reason).toMatch(/ from 2 to nothing /)
})

test('each kind of stress run is described in words', () => {
  const of = (kind: StressRun['kind'], name: string): string => describeRun({ kind, name })
  expect([of('lag', '30m'), of('latency', '30m'), of('lag', 'p95'), of('lag', 'max'), of('version', '7')]).toEqual([
    'with points 30m later',
    'with 30m more to act',
    'with points as late as p95 of their metric',
    'with points as late as the latest of their metric',
    'at version 7',
  ])
})
