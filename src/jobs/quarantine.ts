import { open, rename, writeFile } from 'node:fs/promises'
import type { RequestRow } from '../lake/entry.ts'
import { realDisk } from '../lake/disk.ts'
import { inLake, places, quarantineFile } from '../lake/layout.ts'
import { makeLakeFolder } from '../lake/private.ts'
import { redactBytes } from '../secrets.ts'

const quarantinedBytes = 4_000_000
/** Beyond the cut so much is read that a key which begins before it is seen whole. */
const beyond = 100_000

/**
 * Puts a body that is not applied into the quarantine, its first 4 MB and the request. Keys are replaced before
 * anything is cut or written, numbers that could be one too; both files appear under their names when they are whole.
 */
export async function quarantineBody(
  root: string,
  body: { readonly file: string },
  request: RequestRow,
  reason: string,
  secrets: readonly string[],
): Promise<void> {
  await makeLakeFolder(realDisk, root, places.quarantine)
  const clean = redactBytes(await startOf(body.file), secrets, 'text')
  const { path, query, asked_at, bytes } = request
  const facts = { reason, path, query, asked_at, bytes }
  // The spool is swept: what a kill leaves there under a name of its own is no trace.
  const temporary = `${body.file}.aside`
  for (const [extension, content] of [
    ['.body', clean.subarray(0, quarantinedBytes)],
    ['.json', `${JSON.stringify(facts, null, 2)}\n`],
  ] as const) {
    await writeFile(temporary, content, { mode: 0o600 })
    await rename(temporary, inLake(root, quarantineFile(request.id, extension)))
  }
}

async function startOf(file: string): Promise<Buffer> {
  const handle = await open(file)
  try {
    const memory = Buffer.alloc(quarantinedBytes + beyond)
    let length = 0
    while (length < memory.length) {
      const { bytesRead } = await handle.read(memory, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return memory.subarray(0, length)
  } finally {
    await handle.close()
  }
}
