import { copyFile, mkdir, open, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { redact } from '../errors.ts'
import type { RequestRow } from '../lake/entry.ts'
import { inLake, quarantineFile } from '../lake/layout.ts'

const quarantinedBytes = 4_000_000

/** Puts a body that is not applied into the quarantine, its first 4 MB and the request, without any key. */
export async function quarantineBody(
  root: string,
  body: { readonly file: string },
  request: RequestRow,
  reason: string,
  secrets: readonly string[],
): Promise<void> {
  const target = inLake(root, quarantineFile(request.id, '.body'))
  await mkdir(dirname(target), { recursive: true })
  await copyFile(body.file, target)
  const file = await open(target, 'r+')
  try {
    const { size } = await file.stat()
    if (size > quarantinedBytes) await file.truncate(quarantinedBytes)
  } finally {
    await file.close()
  }
  const text = (await readFile(target)).toString('latin1')
  const safe = redact(text, secrets)
  if (safe !== text) await writeFile(target, Buffer.from(safe, 'latin1'))
  const { path, query, asked_at, bytes } = request
  const facts = { reason, path, query, asked_at, bytes }
  await writeFile(inLake(root, quarantineFile(request.id, '.json')), `${JSON.stringify(facts, null, 2)}\n`)
}
