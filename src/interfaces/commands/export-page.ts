import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { rememberPage } from '../../lake/ledger/pages.ts'
import { indexFile, recordPage } from '../page/record.ts'
import { formatInstant } from '../../base/time.ts'
import { putOut } from '../../lake/store/output.ts'
import { several } from '../../base/figures.ts'
import { instantNow } from '../cli/context.ts'
import type { Answers } from './desk.ts'
import type { Call } from '../cli/spec.ts'

/** Files that `serve --export` writes, and where. */
interface PageExport {
  /** The folder as it was typed; files of the same name in it are replaced. */
  readonly out: string
  /** The limit (ISO 8601): nothing that was known later is written. Undefined: now. */
  readonly limit: string | undefined
  /** Paths of the metrics with a chart; empty: all that are stored. */
  readonly metrics: readonly string[]
  /** Number of timestamps that the slider offers. */
  readonly instants: number
}

/** Writes the page of `pitlake serve` with its answers as files, for any static server. */
export async function exportPage(call: Call, answers: Answers, page: PageExport): Promise<void> {
  const { out, limit, metrics, instants } = page
  const folder = resolve(call.cwd, out)
  const put = async (name: string, text: string): Promise<void> => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    await putOut(join(folder, name), text, call.settings.data, '--export')
  }
  const lake: Record<string, unknown> = {}
  const ask = async (sql: string, asOf: string) => await askedOf(answers, { sql, ...(asOf && { as_of: asOf }) }, lake)
  const wall = limit ?? formatInstant(instantNow(call))
  const { charts, files } = await recordPage({ query: ask, put, lake, wall, metrics, instants })
  // A page of a limit shows what was known then, whatever comes later.
  if (limit === undefined)
    await rememberPage(call.settings.data, {
      name: `the answers of the exported page ${folder}`,
      file: join(folder, indexFile),
      remedy: exportCommand(folder, page),
    })
  call.stderr(`${several(charts, 'chart')}, ${several(files, 'answer')} in ${out}/index.html\n`)
}

/** Formats the command that writes the page again. */
function exportCommand(folder: string, { metrics, instants }: PageExport): string {
  const chosen = metrics.length === 0 ? '' : ` --metrics ${metrics.join(',')}`
  return `pitlake serve --export ${folder}${chosen} --instants ${instants}`
}

/** Queries a text; the facts of the lake in its head are stored in `lake`. */
async function askedOf(answers: Answers, body: object, lake: Record<string, unknown>): Promise<string> {
  const headers = { accept: 'application/json', 'content-type': 'application/json' }
  const question = {
    path: '/query',
    client: 'the page',
    method: 'POST',
    query: '',
    headers,
    body: JSON.stringify(body),
  }
  const answer = await answers.ask(question, new AbortController().signal)
  if (typeof answer === 'string' || typeof answer.body === 'string')
    throw new RangeError('a query was answered as a text')
  const { headers: head = {} } = answer
  const synthetic = head['pitlake-synthetic'] === 'true'
  Object.assign(lake, { version: head['pitlake-version'], digest: head['pitlake-digest'], synthetic })
  if (!('path' in answer.body)) return new TextDecoder().decode(answer.body)
  await using file = answer.body
  return readFileSync(file.path, 'utf8')
}
