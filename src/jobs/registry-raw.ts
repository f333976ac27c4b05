import { createWriteStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { constants, createZstdCompress, zstdDecompress } from 'node:zlib'
import { redact } from '../errors.ts'
import type { StagedFile } from '../lake/commit.ts'
import { liveFiles } from '../lake/held.ts'
import { inLake, rawFile } from '../lake/layout.ts'
import type { Ledger } from '../lake/ledger.ts'
import type { Spool } from '../lake/sweep.ts'
import type { RawBody } from './registry-asking.ts'

const unzstd = promisify(zstdDecompress)

/** Bodies of records repeat themselves within the smallest window: more effort makes them no smaller. */
const zstd = { chunkSize: 1 << 18, params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/** A raw file of the lake as it was received. */
export async function readRaw(root: string, path: string): Promise<Uint8Array> {
  return await unzstd(await readFile(inLake(root, path)))
}

/** Compresses bodies, one after the other on lines of their own, to be committed as one raw file. */
export async function stageRaw(
  spool: Spool,
  kind: string,
  name: string,
  date: string,
  bodies: readonly RawBody[],
  secrets: readonly string[],
): Promise<StagedFile> {
  const file = `${name}.json.zst`
  const pieces = async function* (): AsyncGenerator<Buffer> {
    for (const [i, body] of bodies.entries()) {
      if (i > 0) yield Buffer.from('\n')
      yield await clean(body.file, secrets)
    }
  }
  await pipeline(pieces, createZstdCompress(zstd), createWriteStream(spool.file(file)))
  return {
    temporary: spool.path(file),
    path: rawFile(kind, name, '.json.zst'),
    table: 'raw',
    label: date,
    metric: null,
    interval: null,
    rows: bodies.length,
    min_t: null,
    max_t: null,
    digest: null,
    meta: { kind },
  }
}

/** The bytes of a body; a key that was echoed in it is replaced. */
async function clean(file: string, secrets: readonly string[]): Promise<Buffer> {
  const bytes = await readFile(file)
  if (!secrets.some((secret) => secret !== '' && bytes.includes(secret))) return bytes
  return Buffer.from(redact(bytes.toString('latin1'), secrets), 'latin1')
}

/** The raw files that are older than the configured days, each label of theirs. */
export function oldRaw(ledger: Ledger, before: string): string[] {
  const newest = new Map<string, string>()
  for (const { path, label } of liveFiles(ledger, { table: 'raw' }))
    if (label > (newest.get(path) ?? '')) newest.set(path, label)
  return [...newest].filter(([, label]) => label < before).map(([path]) => path)
}
