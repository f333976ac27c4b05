import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { leaks } from './spellings.ts'

/** Finds keys in folders; must be closed. */
export interface TraceFinder {
  /** Every file below the folder, relative to it, that shows one of the keys; what did not change is not read again. */
  readonly find: (root: string, keys: readonly string[]) => Promise<string[]>
  readonly close: () => void
}

/** Reads files as whoever looks for a key in them would: decompressed, decoded, Parquet by its content. */
export async function traceFinder(): Promise<TraceFinder> {
  const engine = await Engine.open(':memory:', { threads: 1 })
  const read = new Map<string, string>()
  return {
    find: async (root, keys) => {
      const found: string[] = []
      for (const file of filesIn(root)) {
        const path = join(root, file)
        const { size, mtimeMs } = statSync(path)
        if (read.get(path) === `${size} ${mtimeMs}`) continue
        if (await shows(engine, file, path, keys)) found.push(file)
        else read.set(path, `${size} ${mtimeMs}`)
      }
      return found
    },
    close: () => engine.close(),
  }
}

async function shows(engine: Engine, file: string, path: string, keys: readonly string[]): Promise<boolean> {
  const bytes = readFileSync(path)
  const texts = [file, bytes.toString('latin1')]
  if (bytes.length > 0 && file.endsWith('.zst')) texts.push(zstdDecompressSync(bytes).toString('latin1'))
  if (bytes.length > 0 && file.endsWith('.parquet')) texts.push(await contentOf(engine, path))
  const wide = keys.some((key) => bytes.includes(Buffer.from(key, 'utf16le')))
  return wide || keys.some((key) => texts.some((text) => leaks(text, key)))
}

/** Every file below the folder, relative to it, that shows one of the keys. */
export async function keyTraces(root: string, keys: readonly string[]): Promise<string[]> {
  const finder = await traceFinder()
  try {
    return await finder.find(root, keys)
  } finally {
    finder.close()
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
