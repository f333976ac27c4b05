/** `YYYY-MM-DD` of an instant in microseconds, UTC. */
export function dateOf(micros: number): string {
  return new Date(Math.floor(micros / 1000)).toISOString().slice(0, 10)
}

/** RFC 3339 with any offset as microseconds; without a zone it is UTC; null where it cannot be read. */
export function microsOf(text: string | null): number | null {
  const match = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?)? *([Zz]|[+-]\d\d:?\d\d)?$/.exec(
    text ?? '',
  )
  if (!match) return null
  const [, day, time = '00:00', fraction = '', zone = 'Z'] = match
  const at = Date.parse(`${day}T${time}${zone.toUpperCase()}`)
  return Number.isNaN(at) ? null : at * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6))
}
