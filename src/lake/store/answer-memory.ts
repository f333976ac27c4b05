import { createHash } from 'node:crypto'
import { z } from 'zod'
import { jsonOf } from '../../base/json.ts'
import { isWritable, realDisk } from './disk.ts'
import { textOf } from './files.ts'
import { inLake } from './layout.ts'

const memoryShape = z.object({ answers: z.array(z.tuple([z.string(), z.array(z.unknown())])) })

/** Maximum number of answers in the file; the most recently used ones stay. */
const mostAnswers = 100

/**
 * Rows of statements that read nothing but files of the lake, by the SHA-256 of the statement. Such files never change,
 * and the statement names them: the same statement has the same rows. A lake that cannot be written to, a damaged or a
 * missing file remember nothing, and each statement is run again.
 */
export class AnswerMemory {
  readonly #root: string
  readonly #place: string
  readonly #answers: Map<string, readonly unknown[]>
  #isChanged = false

  private constructor(root: string, place: string, answers: Map<string, readonly unknown[]>) {
    this.#root = root
    this.#place = place
    this.#answers = answers
  }

  /** Opens the memory in a file of the lake, which `place` names relative to its folder. */
  static async open(root: string, place: string): Promise<AnswerMemory> {
    const text = await textOf(inLake(root, place)).catch(() => undefined)
    const stored = memoryShape.safeParse(text === undefined ? undefined : jsonOf(text))
    return new AnswerMemory(root, place, new Map(stored.data?.answers))
  }

  /** Returns the rows of the statement; undefined if it was not run before. */
  find(statement: string): readonly unknown[] | undefined {
    const key = digestOf(statement)
    const rows = this.#answers.get(key)
    if (rows !== undefined) this.#putLast(key, rows)
    return rows
  }

  store(statement: string, rows: readonly unknown[]): void {
    this.#putLast(digestOf(statement), rows)
    this.#isChanged = true
  }

  /** Writes the file if an answer was added. */
  async save(): Promise<void> {
    if (!this.#isChanged || !isWritable(this.#root)) return
    const file = inLake(this.#root, this.#place)
    const text = `${JSON.stringify({ answers: [...this.#answers].slice(-mostAnswers) })}\n`
    // Two commands may write at once: each has a part of its own, or both have the same text.
    const part = `${file}.${digestOf(text).slice(0, 8)}.part`
    try {
      await realDisk.write(part, text)
      await realDisk.move(part, file)
    } catch {
      // The answers are known nevertheless: a full disk only costs the next command the time to compute them.
    }
  }

  #putLast(key: string, rows: readonly unknown[]): void {
    this.#answers.delete(key)
    this.#answers.set(key, rows)
  }
}

function digestOf(statement: string): string {
  return createHash('sha256').update(statement).digest('hex')
}
