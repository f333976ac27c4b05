import { expect, test } from 'vitest'
import type { exchangesWith } from '../../src/sources/http/http.ts'
import type { askS3 } from '../../src/maintenance/publish/s3-ask.ts'
import { putParts } from '../../src/maintenance/publish/s3.ts'

type S3Asking = ReturnType<typeof askS3>

const answer = (
  body = '',
  headers: Record<string, string> = {},
): Awaited<ReturnType<ReturnType<typeof askS3>['ask']>> => ({
  kind: 'answer',
  status: 200,
  headers,
  body: Buffer.from(body),
})

/** The ranges of the parts that an object of so many bytes is brought in. */
async function partsOf(bytes: number, partSize: number): Promise<readonly (readonly [number, number])[]> {
  const parts: [number, number][] = []
  const asking: Partial<S3Asking> = {
    want: async (_, { method, body }: Parameters<ReturnType<typeof askS3>['ask']>[1]) => {
      if (method === 'POST') return await Promise.resolve(answer('<UploadId>u</UploadId>'))
      if (body !== undefined && !Buffer.isBuffer(body)) parts.push([body.start, body.bytes])
      return answer('', { etag: '"e"' })
    },
    once: async () =>
      await Promise.resolve(answer('<ETag>e</ETag>') as Awaited<ReturnType<ReturnType<typeof exchangesWith>>>),
    persist: async (_, attempt) => {
      const end = await attempt()
      if ('done' in end) return end.done
      throw new Error('asked again')
    },
  }
  await putParts(asking as S3Asking, 'x', { file: 'f', bytes }, partSize)
  return parts
}

test('the parts of an object follow one another, and the last one is as long as what is left', async () => {
  expect(await partsOf(10, 4)).toEqual([
    [0, 4],
    [4, 4],
    [8, 2],
  ])
  expect(await partsOf(8, 4)).toEqual([
    [0, 4],
    [4, 4],
  ])
  expect(await partsOf(3, 4)).toEqual([[0, 3]])
})

test('there are at most ten thousand of them: beyond that they are larger', async () => {
  expect(await partsOf(10_000, 1)).toHaveLength(10_000)
  for (const bytes of [10_001, 25_001]) {
    const parts = await partsOf(bytes, 1)
    expect(parts.length).toBeLessThanOrEqual(10_000)
    expect(parts.reduce((sum, [, size]) => sum + size, 0)).toBe(bytes)
  }
})
