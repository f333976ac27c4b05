/** Some fields of a type, and some fields of their objects; functions and lists are whole. */
export type Part<T> = {
  readonly [Key in keyof T]?: T[Key] extends ((...values: never[]) => unknown) | readonly unknown[]
    ? T[Key]
    : T[Key] extends object
      ? Part<T[Key]>
      : T[Key]
}

/** A stand-in for a large value of which the code under test reads only these fields; their types are checked. */
export function partOf<T extends object>(fields: Part<T>): T {
  // The one place where a part stands for the whole: a test that reads more of it fails on undefined.
  return fields as T
}
