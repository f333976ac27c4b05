import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { Engine, quote } from '../../src/lake/engine.ts'
import { leaks } from './spellings.ts'

/** Every file below the folder, relative to it, that shows one of the keys to whoever reads it: decompressed, decoded. */
export async function keyTraces(root: string, keys: readonly string[]): Promise<string[]> {
  const engine = await Engine.open(':memory:', { threads: 1 })
  try {
    const found: string[] = []
    for (const file of filesIn(root)) {
      const path = join(root, file)
      const bytes = readFileSync(path)
      const texts = [file, bytes.toString('latin1')]
      if (bytes.length > 0 && file.endsWith('.zst')) texts.push(zstdDecompressSync(bytes).toString('latin1'))
      if (bytes.length > 0 && file.endsWith('.parquet')) texts.push(await contentOf(engine, path))
      const wide = keys.some((key) => bytes.includes(Buffer.from(key, 'utf16le')))
      if (wide || keys.some((key) => texts.some((text) => leaks(text, key)))) found.push(file)
    }
    return found
  } finally {
    engine.close()
  }
}

/** Every file below the folder, relative to it. */
export function filesIn(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((item) => item.isFile())
    .map((item) => join(item.parentPath, item.name).slice(root.length + 1))
    .toSorted()
}

async function contentOf(engine: Engine, path: string): Promise<string> {
  const rows = await engine.rows<{ text: string }>(
    `SELECT to_json(content)::VARCHAR AS text FROM read_parquet(${quote(path)}) content`,
  )
  return rows.map((row) => row.text).join('\n')
}
