import { createHash } from 'node:crypto'
import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { namesIn } from '../../lake/store/disk.ts'
import { readBytes } from '../../lake/store/files.ts'

/** A file of the page: its name as the page asks for it, and its bytes. */
interface PageFile {
  readonly name: string
  readonly type: string
  readonly bytes: Uint8Array
}

/** What a browser says of the copy that it has. */
interface Asked {
  readonly headers: { readonly 'if-none-match'?: string | undefined }
}

/** What runs in a browser alone, and what `record.ts` asks with, too. */
const folders = ['browser/', 'shared/'].map((name) => fileURLToPath(new URL(name, import.meta.url)))
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/**
 * Nothing but this server's own files and answers is let in, and no text runs as a script or stands in another's frame.
 */
const policy =
  "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'"

/** The files of the page as they came with the program: `index.html`, and beside it `page/…`. */
export async function pageFiles(): Promise<readonly PageFile[]> {
  const paths = await Promise.all(
    folders.map(async (folder) => (await namesIn(folder)).map((name) => join(folder, name))),
  )
  return await Promise.all(
    paths.flat().map(async (path) => ({
      name: path.endsWith('index.html') ? 'index.html' : `page/${basename(path)}`,
      type: types[extname(path)] ?? 'application/octet-stream',
      bytes: await readBytes(path),
    })),
  )
}

/**
 * What is shown at the paths of the page, `/` and those beside it. They hold no data; a browser keeps its copy for as
 * long as that has the digest of what is here.
 */
export async function pageShows() {
  const shows = (await pageFiles()).map(({ name, type, bytes }) => {
    const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
    const headers = { etag, 'cache-control': 'no-cache', 'content-security-policy': policy }
    const show = async (question: Asked) =>
      question.headers['if-none-match'] === etag
        ? { status: 304, type, body: new Uint8Array(), headers }
        : { status: 200, type, body: bytes, headers }
    return [name === 'index.html' ? '/' : `/${name}`, show] as const
  })
  return Object.fromEntries(shows)
}
