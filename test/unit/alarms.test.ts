import { expect } from 'vitest'
import { newAlarms, type Stale } from '../../src/interfaces/report/alarms.ts'
import { test } from '../helpers/lake-test.ts'

const late = (metric: string, interval: '1h' | '24h', late_seconds = 9000): Stale => ({
  metric,
  interval,
  series: 1,
  late_seconds,
})
const silent: Stale = { registry: true, late_seconds: 1 }

test('an alarm is sent once for each stale endpoint and interval, and again after a recovery', async ({ root }) => {
  const told = async (...stale: readonly Stale[]): Promise<readonly Stale[]> =>
    (await newAlarms(root, { violations: [], stale }, [])).stale
  const hourly = late('a/x', '1h')
  const daily = late('a/x', '24h')
  const other = late('a/y', '24h')
  expect(await told(hourly)).toEqual([hourly])
  expect(await told(hourly, daily)).toEqual([daily])
  // It lasts, however late it is by now.
  expect(await told(late('a/x', '1h', 99_000), daily, other, silent)).toEqual([other, silent])
  expect(await told(daily, other, silent)).toEqual([])
  expect(await told(hourly, daily, other)).toEqual([hourly])
  expect(await told(silent)).toEqual([silent])
})

test('selected series without a mapping are reported once, and again if the selection grows', async ({ root }) => {
  const unmapped = (text: string): Stale => ({ kind: 'unmapped', text, next: 'metrics: {}', since: null })
  const told = async (...stale: readonly Stale[]): Promise<readonly Stale[]> =>
    (await newAlarms(root, { violations: [], stale }, [])).stale
  const first = unmapped('never requested: a/x BTC')
  const both = unmapped('never requested: a/x BTC, a/y BTC')
  expect(await told(first)).toEqual([first])
  expect(await told(first)).toEqual([])
  expect(await told(both)).toEqual([both])
})
