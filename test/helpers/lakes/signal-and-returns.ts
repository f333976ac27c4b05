import type { LakeRecipe, PointRow } from './lake-recipe.ts'

/** Milliseconds. */
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const start = Date.UTC(2024, 0, 1)
const hours = 24 * 30
const days = 400

/** An hourly signal that comes two minutes after its hour, hourly returns, a daily wave, and daily returns. */
export const signalMetrics = {
  signal: 'indicators/sopr_adjusted_pit',
  hourly: 'addresses/active_count_pit',
  wave: 'supply/current_pit',
  daily: 'addresses/profit_count_pit',
} as const

const iso = (ms: number): string => new Date(ms).toISOString()

/** A number from -1 to 1 that nothing but its place tells. */
function noise(place: number): number {
  const x = Math.sin(place * 12.9898 + 78.233) * 43_758.5453
  return 2 * (x - Math.floor(x)) - 1
}

const sign = (place: number): number => (noise(place) < 0 ? -1 : 1)
const wave = (place: number): number => Math.sin(place / 60)

function point(metric: string, interval: '1h' | '24h', place: number, v: number, lag: number): PointRow {
  const length = interval === '1h' ? hour : day
  const t = start + place * length
  const arrived = iso(t + length + lag)
  // The provider told this instant: files leave it out where it is that of the arrival.
  const seen = metric === signalMetrics.signal ? { basis: 'provider' } : {}
  const currency = metric === signalMetrics.wave ? 'native' : null
  return { metric, asset: 'BTC', interval, t: iso(t), available_at: arrived, v, currency, ...seen }
}

function points(): PointRow[] {
  const { signal, hourly, wave: slow, daily } = signalMetrics
  return Array.from({ length: hours }, (_, place) => place).flatMap((place) => [
    // One in twenty comes twelve minutes late.
    point(signal, '1h', place, sign(place), (place % 20 === 3 ? 12 : 2) * minute),
    point(hourly, '1h', place, sign(place) / 100 + noise(place + 0.5) / 200, 0),
    ...(place < days
      ? [
          point(slow, '24h', place, 100 + wave(place), 10 * minute),
          point(daily, '24h', place, wave(place) / 100 + noise(place + 0.25) / 100, 0),
        ]
      : []),
  ])
}

/** Decided 22 minutes after each hour, on the signal of that hour: it pays only while that is the newest. */
export const fastStrategy = `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-01 01:22', '2024-01-30', '1h'))
  SELECT s.ts, s.v * r.v AS r
  FROM pit_join('d', '${signalMetrics.signal}', '1h') AS s
  JOIN pit_join('d', '${signalMetrics.wave}', '24h') AS w USING (asset, ts)
  JOIN points AS r ON r.metric = '${signalMetrics.hourly}' AND r.asset = s.asset AND r.t = s.ts - INTERVAL 82 MINUTES
  ORDER BY ts`

/** Decided every Monday at noon on where the wave stands, paid by the week after. */
export const slowStrategy = `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-08 12:00', '2025-01-20', '7d'))
  SELECT w.ts, any_value(sign(w.v - 100)) * sum(r.v ORDER BY r.t) AS r
  FROM pit_join('d', '${signalMetrics.wave}', '24h') AS w
  JOIN points AS r ON r.metric = '${signalMetrics.daily}' AND r.asset = w.asset AND r.t > w.ts AND r.t <= w.ts + INTERVAL 7 DAY
  GROUP BY w.ts ORDER BY ts`

const all = points()
const arrivesLater = ({ metric, t }: PointRow): boolean =>
  metric === signalMetrics.hourly && t >= '2024-01-08' && t < '2024-01-29'

/** A lake on which both strategies pay; three weeks of the hourly returns came with its second commit. */
export const signalAndReturns: LakeRecipe = {
  name: 'signal',
  commits: [
    { at: '2025-03-01T00:00:00', points: all.filter((point) => !arrivesLater(point)) },
    { at: '2025-03-02T00:00:00', points: all.filter(arrivesLater) },
  ],
}
