import { redactBytes } from '../../base/secrets.ts'
import type { Micros } from '../../base/time.ts'
import { realDisk } from './disk.ts'
import { readInto, writePrivate } from './files.ts'
import { inLake, places, quarantineFile } from './layout.ts'
import { makeLakeFolder } from './private-folders.ts'

const quarantinedBytes = 4_000_000
/** Number of bytes read beyond the cut, so that a key which begins before it is seen whole. */
const beyond = 100_000

/** The request that returned a body. */
interface Asked {
  readonly id: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly asked_at: Micros
  readonly bytes: number | null
}

/**
 * Puts a body that is not applied into the quarantine, its first 4 MB and the request. Keys are replaced before
 * anything is cut or written, numbers that could be one too; both files appear under their names when they are whole.
 */
export async function quarantineBody(
  root: string,
  body: { readonly file: string },
  request: Asked,
  reason: string,
  secrets: readonly string[],
): Promise<void> {
  await makeLakeFolder(realDisk, root, places.quarantine)
  const clean = redactBytes(await readInto(body.file, Buffer.alloc(quarantinedBytes + beyond)), secrets, 'text')
  const { path, query, asked_at, bytes } = request
  const facts = { reason, path, query, asked_at, bytes }
  // The spool is swept, so a file that a killed process leaves there disappears.
  const temporary = `${body.file}.aside`
  for (const [extension, content] of [
    ['.body', clean.subarray(0, quarantinedBytes)],
    ['.json', `${JSON.stringify(facts, null, 2)}\n`],
  ] as const) {
    await writePrivate(temporary, content)
    await realDisk.move(temporary, inLake(root, quarantineFile(request.id, extension)))
  }
}
