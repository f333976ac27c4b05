import { LakeError, usage } from '../../base/errors.ts'
import { header } from '../../sources/http/governor.ts'
import { sizeOf } from '../../lake/store/files.ts'
import { parseMicros } from '../../base/time.ts'
import { type Destination, type DestinationDeps, folderAt, onTheWay, type Published, type Web } from './destination.ts'
import {
  type S3Answer,
  type S3Call,
  type S3Requests,
  type S3Settings,
  askS3,
  codeIn,
  lastingAnswer,
  parseS3,
  tag,
} from './s3-ask.ts'

/** Larger files travel in parts of this size: one that breaks off is sent again, not all of them. */
const partBytes = 64 << 20

const writing = 'writing to'

/**
 * Name of the object that proves create-only writes: a server that creates it twice does not keep the rule on which
 * commits depend.
 */
const createOnly = `${onTheWay}create-only`

/** Opens the destination that a text names. */
export function destinationOf(text: string, reach: DestinationDeps): Destination {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]
  if (scheme?.toLowerCase() === 's3' && reach.web) return s3At(text, reach.web)
  if (scheme !== undefined || text === '')
    throw usage(`destination ${text.replace(/\/\/[^/]*@/, '//…@')}`, {
      expected: 'a folder or s3://bucket/prefix',
      got: scheme === undefined ? 'nothing' : `the scheme ${scheme}`,
    })
  return folderAt(text, reach)
}

/** Opens a bucket, or a prefix in one; `partSize` is for tests. */
export function s3At(text: string, web: Web, partSize = partBytes): Destination {
  const { bucket, prefix } = parseS3(text)
  const asking = askS3(text, web)
  /** Requests an object; undefined if it does not exist. */
  const findObject = async (doing: string, call: S3Call): Promise<S3Answer | undefined> => {
    const answer = await asking.ask(doing, call)
    if (answer.status >= 200 && answer.status < 300) return answer
    if (isMissing(answer)) return undefined
    throw await asking.refuse(answer, doing)
  }
  let proved: Promise<void> | undefined
  return {
    uri: `s3://${bucket}${prefix === '' ? '' : `/${prefix.slice(0, -1)}`}`,
    read: async (path) => (await findObject('reading', { method: 'GET', path }))?.body,
    get: async (path, file) => (await findObject('reading', { method: 'GET', path, into: file })) !== undefined,
    list: async (folder) => await listBelow(asking, prefix, folder),
    create: async (path, body) => {
      await (proved ??= prove(asking))
      return await createOnce(asking, path, Buffer.from(body))
    },
    put: async (path, file) => {
      const bytes = await sizeOf(file)
      if (bytes > partSize) return await putParts(asking, path, { file, bytes }, partSize)
      await asking.want(writing, { method: 'PUT', path, body: { file, start: 0, bytes } })
    },
    replace: async (path, body) => void (await asking.want(writing, { method: 'PUT', path, body: Buffer.from(body) })),
    remove: async (path) => void (await findObject('removing from', { method: 'DELETE', path })),
  }
}

const isMissing = (answer: S3Answer): boolean => answer.status === 404 && codeIn(answer) === 'NoSuchKey'

/** Refuses a server without create-only writes: it would let one publisher write over another's commit. */
async function prove(asking: S3Requests): Promise<void> {
  const body = Buffer.from('pitlake: this object can be made once only\n')
  for (let times = 0; times < 2; times++) if ((await createOnce(asking, createOnly, body, true)) === 'exists') return
  throw usage(`destination s3://${(await asking.settings()).bucket}`, {
    expected: 'an S3 that heeds If-None-Match: *',
    got: 'one that writes over what is there',
    next: 'publish to a folder, or update that server',
  })
}

/**
 * Creates an object that does not exist. A try without an answer may have created it all the same: an existing object
 * is then compared, and counts as ours if it is equal. `bare`: an object of the same bytes is another's.
 */
async function createOnce(asking: S3Requests, path: string, body: Buffer, bare = false): Promise<'created' | 'exists'> {
  let unsure = false
  return await asking.persist<'created' | 'exists'>(writing, async () => {
    const got = await asking.once({ method: 'PUT', path, body, headers: { 'if-none-match': '*' } })
    const answer = lastingAnswer(got)
    if (answer?.status === 200) return { done: 'created' }
    const isTaken = answer?.status === 412
    if (answer && !isTaken) throw await asking.refuse(answer, writing)
    if (isTaken && (!unsure || bare)) return { done: 'exists' }
    unsure = true
    const existing = lastingAnswer(await asking.once({ method: 'GET', path }))
    if (!existing || isMissing(existing)) return { again: got }
    if (existing.status !== 200) throw await asking.refuse(existing, 'reading')
    return { done: existing.body.equals(body) ? 'created' : 'exists' }
  })
}

async function listBelow({ ask, refuse, settings }: S3Requests, prefix: string, folder: string): Promise<Published[]> {
  const files: Published[] = []
  const below = folder === '' ? prefix : `${prefix}${folder}/`
  const tokens = new Set<string>()
  for (let next: string | undefined, more = true; more; more = next !== undefined) {
    if (next !== undefined && (tokens.has(next) || tokens.size === mostPages))
      throw await endless(settings, tokens.size)
    if (next !== undefined) tokens.add(next)
    const query = {
      'list-type': '2',
      prefix: below,
      ...(next !== undefined && { 'continuation-token': next }),
    }
    const answer = await ask('listing', { method: 'GET', query })
    const page = answer.status === 200 ? listOf(answer.body.toString()) : undefined
    if (!page) throw await refuse(answer, 'listing')
    for (const { key, bytes, modified } of page.objects)
      if (key.startsWith(below) && !key.endsWith('/')) files.push({ path: key.slice(prefix.length), bytes, modified })
    next = page.next
  }
  return files
}

/** A listing has no more pages than this: a hundred million objects. */
const mostPages = 100_000

async function endless(settings: () => Promise<S3Settings>, pages: number): Promise<LakeError> {
  return new LakeError('incomplete', {
    subject: `listing s3://${(await settings()).bucket}`,
    expected: 'a list that ends',
    got: pages === mostPages ? `more than ${mostPages} pages` : `the same token again after ${pages} pages`,
    next: 'nothing was written; that storage cannot be listed as S3 does it',
  })
}

/** Parses a page of a list; undefined for a text that is none: it must not count as a list without objects. */
function listOf(xml: string) {
  const truncated = tag(xml, 'IsTruncated')
  const next = truncated === 'true' ? tag(xml, 'NextContinuationToken') : undefined
  if (truncated === undefined || (truncated === 'true' && next === undefined)) return undefined
  const objects: { readonly key: string; readonly bytes: number; readonly modified: number }[] = []
  for (const [, item = ''] of xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
    const key = tag(item, 'Key')
    const size = tag(item, 'Size')
    const written = tag(item, 'LastModified')
    const micros = written === undefined ? undefined : parseMicros(written)
    if (key === undefined || size === undefined || micros === undefined) return undefined
    objects.push({ key, bytes: Number(size), modified: Math.floor(micros / 1_000_000) })
  }
  return { objects, next }
}

/** Maximum number of parts of an object. */
const mostParts = 10_000

/** Uploads a large file in parts: the object exists, whole, when the last step is done, and not before. */
export async function putParts(
  asking: S3Requests,
  path: string,
  { file, bytes }: { readonly file: string; readonly bytes: number },
  partSize: number,
): Promise<void> {
  const upload = await asking.want(writing, { method: 'POST', path, query: { uploads: '' } })
  const uploadId = tag(upload.body.toString(), 'UploadId')
  // Parts of no upload are objects of their own.
  if (!uploadId) throw await asking.refuse(upload, writing)
  try {
    const size = Math.max(partSize, Math.ceil(bytes / mostParts))
    const tags: string[] = []
    for (let start = 0; start < bytes; start += size) {
      const query = { partNumber: String(tags.length + 1), uploadId }
      const body = { file, start, bytes: Math.min(size, bytes - start) }
      const answer = await asking.want(writing, { method: 'PUT', path, query, body })
      const etag = header(answer.headers, 'etag')
      if (etag === null) throw await asking.refuse(answer, writing)
      tags.push(etag)
    }
    await complete(asking, path, uploadId, tags, bytes)
  } catch (error) {
    // The uploaded parts cost money until they are removed.
    await asking.once({ method: 'DELETE', path, query: { uploadId } }).catch(() => undefined)
    throw error
  }
}

/** Completes an upload; a second attempt may find that the first succeeded. */
async function complete(asking: S3Requests, path: string, uploadId: string, tags: readonly string[], bytes: number) {
  const parts = tags.map((etag, n) => `<Part><PartNumber>${n + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`)
  const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
  await asking.persist(writing, async () => {
    const got = await asking.once({ method: 'POST', path, query: { uploadId }, body })
    const answer = lastingAnswer(got)
    if (!answer) return { again: got }
    // S3 begins its answer before it knows how the step ends.
    if (answer.status === 200 && tag(answer.body.toString(), 'ETag') !== undefined) return { done: undefined }
    if (answer.status === 200) return { again: got }
    const existing = codeIn(answer) === 'NoSuchUpload' ? await asking.ask(writing, { method: 'HEAD', path }) : answer
    if (existing.status === 200 && Number(header(existing.headers, 'content-length')) === bytes)
      return { done: undefined }
    throw await asking.refuse(answer, writing)
  })
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
