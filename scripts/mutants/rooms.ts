import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** The files of a room, the tests that are tried first, and those that only what survives these is worth. */
export interface Room {
  readonly files: readonly string[]
  readonly tests: readonly string[]
  readonly dear?: readonly string[]
}

/** A mutant that no test can notice, with the line that proves it: it is the same, or all but the same. */
export interface Equivalent {
  readonly file: string
  /** As the report prints it. */
  readonly mutant: string
  /** Words of the line on which it stands, where the same change is made on several. */
  readonly at?: string
  readonly why: string
  /** What alone it changes: then it is no equivalent, but counts as one that survives. */
  readonly only?: 'speed' | 'words' | 'logs'
}

/** The rooms in test/mutants/rooms.yaml. */
export function roomsOf(root: string): Readonly<Record<string, Room>> {
  return parse(readFileSync(join(root, 'test/mutants/rooms.yaml'), 'utf8')) as Record<string, Room>
}

/** The list in test/mutants/equivalent.yaml. */
export function equivalents(root: string): readonly Equivalent[] {
  return (parse(readFileSync(join(root, 'test/mutants/equivalent.yaml'), 'utf8')) ?? []) as readonly Equivalent[]
}
