import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { LakeError, usage } from '../errors.ts'
import { jsonOf } from '../json.ts'
import { openAltered } from '../query/altered.ts'
import { carryFile } from '../query/beside.ts'
import { gone, proveFunction, Raised } from '../lookahead/function.ts'
import type { Proof } from '../lookahead/lookahead.ts'
import type { TrialInput } from '../lookahead/runs.ts'
import { changedPoints, openWorlds } from '../lookahead/world.ts'
import { realDisk } from '../store/disk.ts'
import { temporaryFolder } from '../store/files.ts'
import type { Deps } from './spec.ts'

/*
 * A function of another language, tried by its own program: a line of JSON each way. That one begins with `{"text"}`, which
 * names the metrics that the function reads. Then, as often as is wanted, `{"database", "variables", "rows"}`: it opens this
 * throw-away `lake.duckdb`, sets these session variables to these texts, runs the function, writes its rows to that Parquet
 * file and says `{"done": true}`, or `{"raised": "why"}`. At the end stands what came of it.
 */

const opening = z.object({ text: z.string() })
const reply = z.union([z.object({ done: z.literal(true) }), z.object({ raised: z.string() })])

/** Tries a function whose program is on the other side of standard input and output. */
export async function proveTold(folder: string, input: TrialInput, deps: Deps, signal: AbortSignal): Promise<Proof> {
  const lines = createInterface({ input: process.stdin, signal })[Symbol.asyncIterator]()
  const heard = async <T>(shape: z.ZodType<T>): Promise<T> => {
    const line = await lines.next()
    if (signal.aborted) throw new LakeError('stopped', { subject: 'the look-ahead was cancelled' })
    const said = line.done === true ? undefined : shape.safeParse(jsonOf(line.value)).data
    if (said !== undefined) return said
    throw usage('lookahead --function', {
      expected: 'a line of JSON from the program that runs the function',
      got: line.done === true ? 'the end of standard input' : line.value.slice(0, 80),
    })
  }
  await using scratch = await temporaryFolder()
  const database = join(scratch.path, 'lake.duckdb')
  const made = await openAltered(folder, changedPoints, { into: database, threads: 1 })
  made.close()
  using engine = await openWorlds(folder)
  const { text } = await heard(opening)
  let runs = 0
  try {
    return await proveFunction(engine, text, input, async (table, world) => {
      const rows = join(scratch.path, `${runs++}.parquet`)
      deps.stdout(`${JSON.stringify({ database, variables: gone(world), rows })}\n`)
      const said = await heard(reply)
      if ('raised' in said) throw new Raised(said.raised, world)
      await carryFile(rows, engine, table)
      await realDisk.remove(rows)
    })
  } finally {
    await lines.return?.()
    // Whoever waits for the end of this program holds the other end of it.
    process.stdin.destroy()
  }
}
