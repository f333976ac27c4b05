import { isObject } from './json.ts'
import { intervals } from './time.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Describes what is wrong with a value that should be a T, with the position inside it; undefined if it is a T. */
export interface ValueCheck<T> {
  (value: unknown): string | undefined
  /** Whether the index stores such values as JSON text. */
  readonly nested?: boolean
  /** Whether the value may be left out; the index then stores NULL. */
  readonly optional?: boolean
  /** Carries the type only; never set. */
  readonly type?: T
}

type Checks = Readonly<Record<string, ValueCheck<unknown>>>

/** The type that a check proves of a value. */
export type Proven<C> = C extends ValueCheck<infer T> ? T : never
type Missing<S> = { [K in keyof S]: undefined extends Proven<S[K]> ? K : never }[keyof S]
type Plain<T> = { readonly [K in keyof T]: T[K] }

/** The type that checks of its members prove of an object. */
export type Shaped<S extends Checks> = Plain<
  { [K in Exclude<keyof S, Missing<S>>]: Proven<S[K]> } & { [K in Missing<S>]?: Proven<S[K]> }
>

function nested(check: (value: unknown) => string | undefined): ValueCheck<never> {
  return Object.assign(check, { nested: true })
}

export const text: ValueCheck<string> = (value) => (typeof value === 'string' ? undefined : 'no text')
export const wholeNumber: ValueCheck<number> = (value) => (Number.isSafeInteger(value) ? undefined : 'no whole number')
export const count: ValueCheck<number> = (value) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? undefined : 'no count'
export const real: ValueCheck<number> = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? undefined : 'no number'
export const json: ValueCheck<Json> = nested((value) => (value === undefined ? 'nothing' : undefined))
export const flag: ValueCheck<boolean> = (value) => (typeof value === 'boolean' ? undefined : 'neither true nor false')

/** Extends a check to accept null, for an unknown value. */
export function orNull<T>(check: ValueCheck<T>): ValueCheck<T | null> {
  const checkUnlessNull = (value: unknown): string | undefined => (value === null ? undefined : check(value))
  return check.nested === true ? nested(checkUnlessNull) : checkUnlessNull
}

/** Extends a check to a key that may be left out. */
export function maybe<T>(check: ValueCheck<T>): ValueCheck<T | undefined> {
  const checkIfPresent = (value: unknown): string | undefined => (value === undefined ? undefined : check(value))
  return Object.assign(check.nested === true ? nested(checkIfPresent) : checkIfPresent, { optional: true })
}

export function oneOf<T extends string>(...allowed: readonly T[]): ValueCheck<T> {
  const allowedSet = new Set<unknown>(allowed)
  return (value) => (allowedSet.has(value) ? undefined : `not one of ${allowed.join(', ')}`)
}

/** An interval, or null. */
export const interval = orNull(oneOf(...intervals))

export function listOf<T>(check: ValueCheck<T>): ValueCheck<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) return 'no list'
    for (let at = 0; at < value.length; at++) {
      const wrong = check(value[at])
      if (wrong !== undefined) return `[${at}] ${wrong}`
    }
    return undefined
  }
}

/** Checks for an object with these keys; further keys are allowed and not checked. */
export function shape<S extends Checks>(fields: S): ValueCheck<Shaped<S>> {
  const checks = Object.entries(fields)
  return nested((value) => {
    if (!isObject(value)) return 'no object'
    for (const [key, check] of checks) {
      const wrong = check(Object.hasOwn(value, key) ? value[key] : undefined)
      if (wrong !== undefined) return `${key}: ${wrong}`
    }
    return undefined
  })
}

export function mapOf<T>(check: ValueCheck<T>): ValueCheck<{ readonly [key: string]: T }> {
  return nested((value) => {
    if (!isObject(value)) return 'no object'
    for (const [key, member] of Object.entries(value)) {
      const wrong = check(member)
      if (wrong !== undefined) return `${key}: ${wrong}`
    }
    return undefined
  })
}
