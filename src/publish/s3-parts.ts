import { header } from '../net/limits.ts'
import { type Asking, lastingAnswer } from './s3-ask.ts'
import { codeIn, type Refused, tag } from './s3-refusal.ts'

/** More parts than this no object may have. */
const mostParts = 10_000
const doing = 'writing to'

/** Brings a large file in parts: the object is there, whole, when the last step is done, and nothing before. */
export async function putParts(
  asking: Asking,
  path: string,
  { file, bytes }: { readonly file: string; readonly bytes: number },
  partSize: number,
): Promise<void> {
  const begun = await good(asking, await asking.ask(doing, { method: 'POST', path, query: { uploads: '' } }))
  const uploadId = tag(begun.body.toString(), 'UploadId')
  // Parts of no upload are objects of their own.
  if (!uploadId) throw await asking.refuse(begun, doing)
  try {
    const size = Math.max(partSize, Math.ceil(bytes / mostParts))
    const tags: string[] = []
    for (let start = 0; start < bytes; start += size) {
      const query = { partNumber: String(tags.length + 1), uploadId }
      const body = { file, start, bytes: Math.min(size, bytes - start) }
      const answer = await good(asking, await asking.ask(doing, { method: 'PUT', path, query, body }))
      const etag = header(answer.headers, 'etag')
      if (etag === null) throw await asking.refuse(answer, doing)
      tags.push(etag)
    }
    await complete(asking, path, uploadId, tags, bytes)
  } catch (error) {
    // What is left of it costs money until it is taken back.
    await asking.once({ method: 'DELETE', path, query: { uploadId } }).catch(() => undefined)
    throw error
  }
}

/** The last step; told twice, it may find that the first time was heard. */
async function complete(
  asking: Asking,
  path: string,
  uploadId: string,
  tags: readonly string[],
  bytes: number,
): Promise<void> {
  const parts = tags.map((etag, n) => `<Part><PartNumber>${n + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`)
  const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
  await asking.persist(doing, async () => {
    const got = await asking.once({ method: 'POST', path, query: { uploadId }, body })
    const answer = lastingAnswer(got)
    if (!answer) return { again: got }
    // S3 begins its answer before it knows how the step ends.
    if (answer.status === 200 && tag(answer.body.toString(), 'ETag') !== undefined) return { done: undefined }
    if (answer.status === 200) return { again: got }
    const there = codeIn(answer) === 'NoSuchUpload' ? await asking.ask(doing, { method: 'HEAD', path }) : answer
    if (there.status === 200 && Number(header(there.headers, 'content-length')) === bytes) return { done: undefined }
    throw await asking.refuse(answer, doing)
  })
}

async function good(asking: Asking, answer: Refused): Promise<Refused> {
  if (answer.status === 200) return answer
  throw await asking.refuse(answer, doing)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
