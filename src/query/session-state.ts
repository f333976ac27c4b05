import type { Engine } from '../store/engine.ts'
import type { Vocabulary } from './completion.ts'
import type { Format } from './write.ts'

/** The state that the dot commands change. */
export interface SessionState {
  readonly engine: Engine
  readonly folder: string
  readonly words: Vocabulary
  format: Format
  /** Rows of a table to show; 0 shows all. */
  rows: number
  timer: boolean
  /** The file that takes the next result. */
  out: string | undefined
  quit: boolean
}
