import type { exitMeanings } from '../../src/base/errors.ts'
import type { Scene } from './ends-stage.ts'
import { golden } from './golden-rows.ts'

/**
 * A command as it is typed behind its name, where, and how it ends: code, standard output (the words; an object: with
 * `--json`, what the one document holds; '': nothing), and what stands on stderr ('': nothing).
 */
export type Row = readonly [command: string, ...Rest]
type Rest = readonly [
  rest: string,
  scene: Scene,
  code: keyof typeof exitMeanings,
  out: RegExp | object | '',
  err: RegExp | '',
]

const words = golden('ends/words') as Readonly<Record<string, unknown>>

/** What a row says of a stream: `$name` is told in `words.yaml`, `/…/m` is a pattern. */
function meant(said: unknown): unknown {
  if (typeof said !== 'string' || said === '') return said
  if (said.startsWith('$')) return meant(words[said.slice(1)])
  const end = said.lastIndexOf('/')
  return new RegExp(said.slice(1, end), said.slice(end + 1))
}

/** The rows of commands, each of which is named once. */
function rowsOf(name: string): Row[] {
  const table = golden(`ends/${name}`) as Readonly<Record<string, readonly Rest[]>>
  return Object.entries(table).flatMap(([command, rows]) =>
    rows.map(([rest, scene, code, ...said]): Row => [command, rest, scene, code, ...(said.map(meant) as ['', ''])]),
  )
}

/** Commands that need no lake. */
export const commandsOfFiles: readonly Row[] = rowsOf('files')
/** Commands that ask a provider. */
export const commandsThatAsk: readonly Row[] = rowsOf('asking')
/** Commands of what is in the lake. */
export const commandsOfTheLake: readonly Row[] = rowsOf('lake')
/** Commands that bring a lake elsewhere. */
export const commandsThatCopy: readonly Row[] = rowsOf('copies')
