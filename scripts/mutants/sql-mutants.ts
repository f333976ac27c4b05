import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { type Mutation, mutationsOf } from './sql-mutator.ts'
import { type Place, sqlTextsOf } from './sql-texts.ts'

/** A change of one file. */
export interface Mutant {
  readonly file: string
  readonly line: number
  readonly kind: string
  /** What is changed with a little of what stands around it; tells the mutant in its file, wherever it moves. */
  readonly mutant: string
  /** The file without the change. */
  readonly source: string
  /** The characters of the file that become others. */
  readonly edit: Pick<Mutation, 'start' | 'end' | 'to'>
  /** Where in the file the SQL text stands: in TypeScript between its quotes. */
  readonly place: Place
}

/** The file as it is with the mutant. */
export function textOf({ source, edit }: Mutant): string {
  return source.slice(0, edit.start) + edit.to + source.slice(edit.end)
}

/** All mutants of the SQL of these rooms (all where there is none), in the order of files and places. */
export function allMutants(room: string | undefined): readonly Mutant[] {
  const folder = room === undefined ? 'src' : `src/${room}`
  const files = globSync([`${folder}/**/*.sql`, `${folder}/**/*.ts`, ...(room === undefined ? ['src/*.ts'] : [])])
  // What commands say of SQL are words of their help.
  const own = files.filter((file) => !file.startsWith('src/commands/'))
  return [...new Set(own)].toSorted().flatMap(mutantsOf)
}

function mutantsOf(file: string): Mutant[] {
  const whole = readFileSync(file, 'utf8')
  const isSql = file.endsWith('.sql')
  const places = isSql ? [{ start: 0, end: whole.length }] : sqlTextsOf(whole)
  const times = new Map<string, number>()
  return places.flatMap((place) => {
    const text = whole.slice(place.start, place.end)
    return mutationsOf(text, isSql ? '{{' : '${').map((mutation): Mutant => {
      const at = { ...mutation, start: place.start + mutation.start, end: place.start + mutation.end }
      const described = describe(whole, at)
      const nth = (times.get(described) ?? 0) + 1
      times.set(described, nth)
      return {
        file,
        line: whole.slice(0, at.start).split('\n').length,
        kind: mutation.kind,
        mutant: nth === 1 ? described : `${described} (${nth})`,
        source: whole,
        edit: at,
        place,
      }
    })
  })
}

const around = 28

function describe(text: string, { start, end, to }: { start: number; end: number; to: string }): string {
  const flat = (part: string): string => part.replaceAll(/\s+/g, ' ')
  const before = flat(text.slice(Math.max(0, start - around), start))
  const after = flat(text.slice(end, end + around))
  return `${before}[${flat(text.slice(start, end))} -> ${flat(to)}]${after}`.trim()
}

/** As many of these as are asked for, in an order drawn by a seed: fewer are the first of more. */
export function sampled(mutants: readonly Mutant[], count: number, seed: string): readonly Mutant[] {
  const ranked = mutants.map((mutant) => ({ mutant, rank: digest(`${seed}\n${mutant.file}\n${mutant.mutant}`) }))
  return ranked
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, count)
    .map(({ mutant }) => mutant)
}

/** SHA-256 of a text, hex. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
