/** ISO text as Unix microseconds, in UTC if it names no offset; fractions to the microsecond. */
export function micros(text: string): number {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? ''
  const whole = text.replace(/\.\d+/, '')
  return (
    Date.parse(/Z$|[+-]\d\d:\d\d$/.test(whole) ? whole : `${whole}Z`) * 1000 +
    Number(fraction.padEnd(6, '0').slice(0, 6))
  )
}

/** Microseconds as ISO text. */
export function isoOf(us: number): string {
  const text = new Date(Math.floor(us / 1000)).toISOString()
  return text.replace('Z', `${String(us - Math.floor(us / 1000) * 1000).padStart(3, '0')}Z`)
}
