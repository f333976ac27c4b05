import { LakeError } from '../errors.ts'

/** A value that may stand for `$name` or `$1` in a statement; a Date is a TIMESTAMPTZ. */
export type Parameter = string | number | bigint | boolean | null | Date
export type Parameters = readonly Parameter[] | Readonly<Record<string, Parameter>>

/** Each parameter, checked and made into what the engine takes; by place or by name as they were given. */
export function bindAll<T>(
  given: Parameters | undefined,
  bind: (value: Parameter) => T,
): [] | [T[] | Record<string, T>] {
  if (given === undefined) return []
  const one = (value: Parameter, name: string): T => {
    check(value, name)
    return bind(value)
  }
  if (Array.isArray(given)) return [(given as readonly Parameter[]).map((value, i) => one(value, `$${i + 1}`))]
  return [Object.fromEntries(Object.entries(given).map(([name, value]) => [name, one(value, `$${name}`)]))]
}

function check(value: Parameter, name: string): void {
  if (value instanceof Date && Number.isFinite(value.getTime())) return
  if (value === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof value)) return
  throw new LakeError('usage', {
    subject: `parameter ${name}`,
    expected: 'a text, a number, a bigint, a boolean, null or a Date',
    got: value instanceof Date ? 'an invalid Date' : Array.isArray(value) ? 'a list' : typeof value,
  })
}
