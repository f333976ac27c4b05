import { fileOf } from './conversion.ts'
import { readStream, writeStream } from '../store/files.ts'
import { pipeline } from 'node:stream/promises'
import { lexBody } from './lexer.ts'
import type { Loading } from './stage.ts'

/** Lexes the bodies that were not lexed yet; returns those that are sound JSON arrays of objects and not empty. */
export async function lexBodies(loading: Loading, bodies: readonly number[]): Promise<number[]> {
  const { files, lexed, poison } = loading
  const good: number[] = []
  for (const body of bodies) {
    const file = fileOf(files, body)
    const seen = lexed.get(file) ?? (await lexBody(file))
    lexed.set(file, seen)
    if (seen.problem !== null) poison.set(body, seen.problem)
    else if (seen.elements > 0) good.push(body)
    if (seen.problem === null && seen.negativeZeros.length > 0) await respell(loading, body, seen.negativeZeros)
  }
  return good
}

/** Writes a copy of the body in which each `-0` is `-0.0`: DuckDB reads the former as an integer without a sign. */
async function respell(loading: Loading, body: number, ends: readonly number[]): Promise<void> {
  const copy = `${loading.temporary}.body${body}`
  loading.copies.set(body, copy)
  async function* spelled(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let offset = 0
    let at = 0
    for await (const chunk of source) {
      let from = 0
      for (; at < ends.length && (ends[at] ?? 0) <= offset + chunk.length; at++) {
        const cut = (ends[at] ?? 0) - offset
        yield chunk.subarray(from, cut)
        yield Buffer.from('.0')
        from = cut
      }
      yield chunk.subarray(from)
      offset += chunk.length
    }
  }
  await pipeline(readStream(fileOf(loading.files, body)), spelled, writeStream(copy))
}
