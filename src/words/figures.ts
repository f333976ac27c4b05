import { day, hour, minute } from '../time.ts'

/** `1,234,567.5`, at most three decimals. To set up the formatter of a locale takes longer than all lines of a run. */
export function number(value: number): string {
  const [whole = '', ...decimals] = String(Math.round(value * 1000) / 1000).split('.')
  return [whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ','), ...decimals].join('.')
}

/** `1,234,567`. */
export function whole(count: number): string {
  return number(Math.round(count))
}

/** `725 k`, `1.16 M`: three digits that fit into a small place. */
export function brief(count: number): string {
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e4, 'k'],
  ] as const) {
    if (count < size) continue
    const scaled = count / (unit === 'k' ? 1000 : size)
    return `${scaled >= 100 ? Math.round(scaled) : scaled >= 10 ? scaled.toFixed(1) : scaled.toFixed(2)} ${unit}`
  }
  return whole(count)
}

/** A share in per cent that says 100 only when nothing is missing and 0 only when nothing is there. */
export function percent(part: number, all: number): string {
  if (all <= 0) return 'none'
  const share = (part / all) * 100
  if (part >= all) return '100 %'
  if (part <= 0) return '0 %'
  if (share > 99.99) return '> 99.99 %'
  if (share < 0.01) return '< 0.01 %'
  return share > 99 || share < 1 ? `${floorTo(share, 2)} %` : `${floorTo(share, 1)} %`
}

function floorTo(value: number, digits: number): string {
  const size = 10 ** digits
  return (Math.floor(value * size) / size).toFixed(digits)
}

/** Bytes as people read them. */
export function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let left = count
  let unit = 0
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000
    unit++
  }
  return `${left >= 100 || unit === 0 ? Math.round(left) : left.toFixed(1)} ${units[unit] ?? ''}`
}

/** A span of time in its two largest units: `3 d 4 h`, `12 min`, `40 s`. */
export function span(seconds: number): string {
  if (seconds < 0) return `-${span(-seconds)}`
  const total = Math.round(seconds)
  const parts: [number, number, string, string][] = [
    [day, hour, 'd', 'h'],
    [hour, minute, 'h', 'min'],
    [minute, 1, 'min', 's'],
  ]
  for (const [big, small, bigName, smallName] of parts) {
    if (total < big) continue
    const rest = Math.floor((total % big) / small)
    const first = `${Math.floor(total / big)} ${bigName}`
    return rest === 0 || total >= 20 * big ? first : `${first} ${rest} ${smallName}`
  }
  return total < 10 && !Number.isInteger(seconds) ? `${seconds.toFixed(1)} s` : `${total} s`
}

/** `2026-11-21 16:03 UTC`. */
export function moment(at: number): string {
  return `${new Date(at * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** `2026-11-21`, or with its time where the instant is not midnight. */
export function instant(at: number): string {
  const text = new Date(at * 1000).toISOString()
  return at % day === 0 ? text.slice(0, 10) : text.slice(0, 16).replace('T', ' ')
}

/** `2026-11` of a count of months since 1970-01. */
export function monthName(index: number): string {
  return `${1970 + Math.floor(index / 12)}-${String((((index % 12) + 12) % 12) + 1).padStart(2, '0')}`
}

/** `1 file`, `2 files`. */
export function several(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`
}

/** How many files, and how large they are. */
export function filesInWords({ files, bytes: size }: { readonly files: number; readonly bytes: number }): string {
  return `${several(files, 'file')}, ${bytes(size)}`
}

/** `3 changed, 1,200 null filled` of counts by name; what there is none of is left out. */
export function counted(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  return some.map(([name, count]) => `${whole(count)} ${name.replaceAll('_', ' ')}`).join(', ')
}
