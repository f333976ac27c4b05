/** Scales and their ticks: figures that are round, instants that are calendar's. */

/** Round figures from `low` to `high`, about so many. */
export function ticks(low, high, about) {
  const raw = (high - low) / Math.max(1, about)
  if (!(raw > 0) || !Number.isFinite(raw)) return [low]
  const size = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 5, 10].map((n) => n * size).find((one) => one >= raw) ?? 10 * size
  const first = Math.ceil(low / step)
  const count = Math.floor(high / step) - first + 1
  return Array.from({ length: count }, (_, n) => Number(((first + n) * step).toPrecision(12)))
}

/** A figure of an axis, short. */
export function tickText(value) {
  const [large, small] = [Math.abs(value) >= 10_000, value !== 0 && Math.abs(value) < 0.001]
  const notation = small ? 'scientific' : 'compact'
  return large || small ? value.toLocaleString('en', { notation, maximumSignificantDigits: 4 }) : String(value)
}

const minute = 60_000
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map((n) => n * minute)
const months = [1, 2, 3, 6, 12, 24, 60, 120]

/** Instants of the UTC calendar between two, about so many, in milliseconds. */
export function timeTicks(low, high, about) {
  const raw = (high - low) / Math.max(1, about)
  const even = steps.find((step) => step >= raw)
  if (even !== undefined) {
    const first = Math.ceil(low / even) * even
    return Array.from({ length: Math.max(0, Math.floor((high - first) / even) + 1) }, (_, n) => first + n * even)
  }
  const step = months.find((n) => n * 30.4 * 1440 * minute >= raw) ?? 240
  const from = new Date(low)
  const found = []
  const first = Math.floor((from.getUTCFullYear() * 12 + from.getUTCMonth()) / step) * step
  for (let month = first; found.length < 100; month += step) {
    const at = Date.UTC(Math.floor(month / 12), month % 12)
    if (at > high) return found
    if (at >= low) found.push(at)
  }
  return found
}

/** An instant of an axis: what differs from its neighbours. */
export function timeText(ms, apart) {
  const text = new Date(ms).toISOString()
  if (apart < 1440 * minute && !text.endsWith('T00:00:00.000Z')) return text.slice(11, 16)
  if (apart < 28 * 1440 * minute) return text.slice(5, 10)
  return text.slice(0, apart < 360 * 1440 * minute ? 7 : 4)
}

/** From values to places; both ends of it stand in `domain`. */
export function scale([low, high], [from, to]) {
  const rise = high === low ? 0 : (to - from) / (high - low)
  const place = (value) => (rise === 0 ? (from + to) / 2 : from + (value - low) * rise)
  return Object.assign(place, { invert: (at) => (rise === 0 ? low : low + (at - from) / rise) })
}
