import { z } from 'zod'
import { jsonOf } from '../../base/json.ts'
import { isWritable, realDisk } from '../store/disk.ts'
import { textOf } from '../store/files.ts'
import { inLake, places } from '../store/layout.ts'
import { type Lag, lagOf } from './derived.ts'
import { sha256 } from './entry.ts'
import type { Ledger } from './ledger.ts'

const pageShape = z.object({
  /** Name of the page, in the plural. */
  name: z.string(),
  /** The file of it that names the version of the lake; absolute. */
  file: z.string(),
  /** The command that writes it again. */
  remedy: z.string(),
})

/** A page that a command wrote outside the lake, as `pages.json` of the lake remembers it. */
export type WrittenPage = z.infer<typeof pageShape>

/** Maximum number of remembered pages: those written last. */
const mostPages = 20

/** Records where a page was written, unless the lake is read-only. */
export async function rememberPage(root: string, page: WrittenPage): Promise<void> {
  if (!isWritable(root)) return
  const knownPages = await readPages(root)
  const pages = [...knownPages.filter(({ file }) => file !== page.file), page].slice(-mostPages)
  const text = `${JSON.stringify({ pages })}\n`
  if (text === `${JSON.stringify({ pages: knownPages })}\n`) return
  const file = inLake(root, places.pages)
  const part = `${file}.${sha256(page.file).slice(0, 8)}.part`
  try {
    await realDisk.write(part, text)
    await realDisk.move(part, file)
  } catch {
    // The page is written. If a full disk, or a second writer of the same page, prevents its record, the command
    // succeeds nevertheless.
  }
}

async function readPages(root: string): Promise<readonly WrittenPage[]> {
  const text = await textOf(inLake(root, places.pages))
  const read = z.object({ pages: z.array(pageShape) }).safeParse(text === undefined ? null : jsonOf(text))
  return read.data?.pages ?? []
}

/** Name of the `meta` element with which a status page states the version of its lake. */
export const versionMeta = 'pitlake-version'

const ofStatusPage = new RegExp(`<meta name="${versionMeta}" content="(\\d+)">`)
const ofExport = z.object({ lake: z.object({ version: z.coerce.number().int().nonnegative() }) })

/** Returns the version that a page states; null if the file is no longer a page of pitlake. */
function versionIn(text: string): number | null {
  const [, version] = ofStatusPage.exec(text) ?? []
  return version === undefined ? (ofExport.safeParse(jsonOf(text)).data?.lake.version ?? null) : Number(version)
}

/**
 * Lists the lags of the pages that commands wrote, except the page in `except`. A page that no longer exists has no
 * lag.
 */
export async function lagsOfPages(ledger: Ledger, except?: string): Promise<readonly Lag[]> {
  const { version: newest } = ledger.head()
  const lags: Lag[] = []
  for (const { name, file, remedy } of await readPages(ledger.root)) {
    const text = file === except ? undefined : await textOf(file)
    const version = text === undefined ? null : versionIn(text)
    const lag = version === null ? null : lagOf({ name, version, program: null, remedy }, { newest, program: null })
    if (lag !== null) lags.push(lag)
  }
  return lags
}
