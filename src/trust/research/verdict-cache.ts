import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { z } from 'zod'
import { jsonOf } from '../../base/json.ts'
import { makeFolder, realDisk } from '../../lake/store/disk.ts'
import { textOf } from '../../lake/store/files.ts'
import type { StoredVerdict } from './judged-item.ts'

const verdictShape = z.object({
  verdict: z.enum(['leak', 'undecided', 'clean']),
  reason: z.string().nullable(),
  leak: z.string().nullable(),
  proved: z.boolean(),
  depends_on: z.array(z.string()),
})
const cacheShape = z.object({ verdicts: z.array(z.tuple([z.string(), verdictShape])) })

/** Number of verdicts that the file keeps; the oldest go first. */
const mostKept = 5000

/** Verdicts of earlier runs, in a file outside the lake. One that is damaged, or missing, is an empty one. */
export class VerdictCache {
  readonly #file: string
  readonly #verdicts: Map<string, StoredVerdict>
  #isChanged = false

  private constructor(file: string, verdicts: Map<string, StoredVerdict>) {
    this.#file = file
    this.#verdicts = verdicts
  }

  static async open(file: string): Promise<VerdictCache> {
    const text = await textOf(file).catch(() => undefined)
    const read = cacheShape.safeParse(text === undefined ? undefined : jsonOf(text))
    return new VerdictCache(file, new Map(read.success ? read.data.verdicts : []))
  }

  find(key: string): StoredVerdict | undefined {
    return this.#verdicts.get(key)
  }

  store(key: string, verdict: StoredVerdict): void {
    this.#verdicts.delete(key)
    this.#verdicts.set(key, verdict)
    this.#isChanged = true
  }

  /**
   * Writes the file if a verdict was added; gives why it could not be written, if so. The next run then judges again.
   */
  async save(): Promise<string | null> {
    if (!this.#isChanged) return null
    const verdicts = [...this.#verdicts].slice(-mostKept)
    const part = `${this.#file}.part`
    try {
      await makeFolder(realDisk, dirname(this.#file), 0o700)
      await realDisk.write(part, `${JSON.stringify({ verdicts })}\n`)
      await realDisk.move(part, this.#file)
      return null
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }
}

/** Computes the key of a verdict: all that it depends on, as a digest. */
export function verdictKey(facts: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex')
}
