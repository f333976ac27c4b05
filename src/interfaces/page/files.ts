import { createHash } from 'node:crypto'
import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { namesIn } from '../../lake/store/disk.ts'
import { readBytes } from '../../lake/store/files.ts'
import { longestQuestion } from '../server/bounds.ts'

/** File of the page: its name in the page's requests, and its bytes. */
interface PageFile {
  readonly name: string
  readonly type: string
  readonly bytes: Uint8Array
}

/** Request of a browser; a header names the copy that it has. */
interface FileRequest {
  readonly headers: { readonly 'if-none-match'?: string | undefined }
}

/** Folders with code that runs in browsers alone, and with code that needs no document. */
const folders = ['browser/', 'shared/'].map((name) => fileURLToPath(new URL(name, import.meta.url)))
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/**
 * Content security policy: only this server's own files and answers may load, and no text runs as a script or is framed
 * by another page.
 */
const policy =
  "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'"

/** Reads the files of the page as they came with the program: `index.html`, and next to it `page/…`. */
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

/** Marks the root element of `index.html` with an attribute, which the modules of the page read. */
export function markRoot(bytes: Uint8Array, attribute: string): Uint8Array {
  return new TextEncoder().encode(
    new TextDecoder().decode(bytes).replace('<html lang="en">', `<html lang="en" ${attribute}>`),
  )
}

/**
 * Builds the answers at the paths of the page, `/` and those next to it. They contain no data; a browser keeps its copy
 * for as long as that has the digest of the file here.
 */
export async function pageShows() {
  const shows = (await pageFiles()).map(({ name, type, bytes: fileBytes }) => {
    const bytes = name === 'index.html' ? markRoot(fileBytes, `data-longest-request="${longestQuestion}"`) : fileBytes
    const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
    const headers = { etag, 'cache-control': 'no-cache', 'content-security-policy': policy }
    const show = async (request: FileRequest) =>
      request.headers['if-none-match'] === etag
        ? { status: 304, type, body: new Uint8Array(), headers }
        : { status: 200, type, body: bytes, headers }
    return [name === 'index.html' ? '/' : `/${name}`, show] as const
  })
  return Object.fromEntries(shows)
}
