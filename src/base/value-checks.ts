import { isObject } from './json.ts'
import { intervals } from './time.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Says what is wrong with a value that should be a T, with the place inside it; undefined when it is one. */
export interface ValueCheck<T> {
  (value: unknown): string | undefined
  /** The index keeps such values as JSON text. */
  readonly nested?: boolean
  /** The value may be left out; the index then keeps NULL. */
  readonly optional?: boolean
  /** Never there: carries the type. */
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

/** Null where nothing is known. */
export function orNull<T>(check: ValueCheck<T>): ValueCheck<T | null> {
  const checkUnlessNull = (value: unknown): string | undefined => (value === null ? undefined : check(value))
  return check.nested === true ? nested(checkUnlessNull) : checkUnlessNull
}

/** A key that may be left out. */
export function maybe<T>(check: ValueCheck<T>): ValueCheck<T | undefined> {
  const checkIfPresent = (value: unknown): string | undefined => (value === undefined ? undefined : check(value))
  return Object.assign(check.nested === true ? nested(checkIfPresent) : checkIfPresent, { optional: true })
}

export function oneOf<T extends string>(...allowed: readonly T[]): ValueCheck<T> {
  const allowedSet = new Set<unknown>(allowed)
  return (value) => (allowedSet.has(value) ? undefined : `not one of ${allowed.join(', ')}`)
}

/** An interval, where there is one. */
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

/** An object with these keys; further ones are left to whoever knows them. */
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
