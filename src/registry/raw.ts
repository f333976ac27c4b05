import { readBytes, readInto, sizeOf, writeStream } from '../store/files.ts'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { constants, createZstdCompress, zstdDecompress } from 'node:zlib'
import type { StagedFile } from '../ledger/commit.ts'
import { liveFiles } from '../ledger/held.ts'
import { inLake, rawFile } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Spool } from '../ledger/sweep.ts'
import type { RawBody } from './asking.ts'
import { type Drafting, fileName, listAgain } from './staging.ts'
import type { Tags } from './state.ts'
import { withoutPoints } from '../ledger/draft.ts'

const unzstd = promisify(zstdDecompress)

/** Bodies of records repeat themselves within the smallest window: more effort makes them no smaller. */
const zstd = { chunkSize: 1 << 18, params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/** A raw file of the lake as it was received. */
export async function readRaw(root: string, path: string): Promise<Uint8Array> {
  return await unzstd(await readBytes(inLake(root, path)))
}

/** The bodies as received; those of an unchanged registry are listed again. Gives the entity tags to ask with. */
export async function rawFiles(drafting: Drafting, fresh: boolean): Promise<Tags> {
  const { finished, context, date, files } = drafting
  const { raws, whole, tags } = finished
  const { spool, ledger } = context
  const name = fileName(drafting)
  const next: Record<string, Tags[string]> = { ...tags }
  for (const { known, address } of raws) {
    if (!known) continue
    const held = tags[address]
    if (!held) throw new RangeError(`no body of ${address} is held`)
    listAgain(drafting, 'raw', held.raw)
  }
  const received = raws.filter((body) => !body.known)
  if (received.length === 0) return next
  if (whole === null || whole === 'lists') {
    const feed = received.filter(({ address }) => address.startsWith('/changes?'))
    if (fresh && feed.length > 0) files.push(await stageRaw(spool, 'feed', name, date, feed))
  }
  const held = liveFiles(ledger, { table: 'raw' }).findLast((file) => file.meta['kind'] === 'snapshot')
  if (whole === 'snapshot' && !fresh && held) {
    listAgain(drafting, 'raw', held.path)
    return next
  }
  const others = received.filter(({ address }) => !address.startsWith('/changes'))
  for (const [i, body] of others.entries()) {
    const own = whole === 'snapshot' ? name : `${name}-${i}`
    const staged = await stageRaw(spool, whole ?? 'feed', own, date, [body])
    files.push(staged)
    if (body.etag !== null) next[body.address] = { etag: body.etag, raw: staged.path }
  }
  return next
}

/** Compresses bodies, one after the other on lines of their own, to be committed as one raw file. */
async function stageRaw(
  spool: Spool,
  kind: string,
  name: string,
  date: string,
  bodies: readonly RawBody[],
): Promise<StagedFile> {
  const file = `${name}.json.zst`
  const compressor = createZstdCompress(zstd)
  const written = pipeline(compressor, writeStream(spool.file(file)))
  try {
    await Promise.race([written, feed(compressor, bodies)])
    compressor.end()
    await written
  } finally {
    compressor.destroy()
  }
  return {
    temporary: spool.path(file),
    path: rawFile(kind, name, '.json.zst'),
    table: 'raw',
    label: date,
    ...withoutPoints,
    rows: bodies.length,
    meta: { kind },
  }
}

/** Hands the bodies on, all in the same memory: each is taken in before the next is read. */
async function feed(compressor: Writable, bodies: readonly RawBody[]): Promise<void> {
  const take = async (bytes: Buffer): Promise<void> =>
    await new Promise((done, failed) => {
      compressor.write(bytes, (error) => (error ? failed(error) : done()))
    })
  let memory = Buffer.alloc(0)
  for (const [i, { file }] of bodies.entries()) {
    if (i > 0) await take(Buffer.from('\n'))
    const size = await sizeOf(file)
    if (memory.length < size) memory = Buffer.allocUnsafeSlow(size)
    await take(await readInto(file, memory.subarray(0, size)))
  }
}

/** The raw files that are older than the configured days, each label of theirs. */
export function oldRaw(ledger: Ledger, before: string): string[] {
  const newest = new Map<string, string>()
  for (const { path, label } of liveFiles(ledger, { table: 'raw' }))
    if (label > (newest.get(path) ?? '')) newest.set(path, label)
  return [...newest].filter(([, label]) => label < before).map(([path]) => path)
}
