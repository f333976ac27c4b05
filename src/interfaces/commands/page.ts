import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { usage } from '../../base/errors.ts'
import { kinds } from '../../base/kinds.ts'
import { recordPage } from '../page/record.ts'
import { formatInstant } from '../../base/time.ts'
import { putOut } from '../../lake/store/output.ts'
import { several } from '../../base/figures.ts'
import { instantNow, readContext } from '../cli/context.ts'
import { type Answers, deskOptions, openAnswers } from './desk.ts'
import { withScratch } from './query.ts'
import { wallOf, wallOption } from './serve.ts'
import { talking } from '../cli/spec.ts'

export const pageCommand = talking({
  viewsBefore: true,
  options: {
    '--out DIR': 'the folder; what is in it of the same name is written over',
    ...wallOption,
    '--metrics LIST': 'the charts: paths (default: all that are held)',
    '--instants N': ['places of the slider', kinds.count(), '24'],
    ...deskOptions('5m'),
  },
  details: `The charts, the universe and the coverage of the page of \`pitlake serve\`, with data as files: any static server shows
it (python3 -m http.server -d DIR). What needs an engine, such as SQL, names \`pitlake serve\` there.`,
  run: async (typed) => {
    const { out, metrics = [], instants } = typed.options
    if (out === undefined) throw usage('--out', { expected: 'a folder to write', got: 'none' })
    const call = await readContext(typed)
    const wall = wallOf(typed.options)
    const folder = resolve(call.cwd, out)
    await withScratch(async (scratch) => {
      await using answers = openAnswers(call, scratch, { wall, limited: wall !== undefined })
      await answers.ready()
      const put = async (name: string, text: string): Promise<void> => {
        mkdirSync(dirname(join(folder, name)), { recursive: true })
        await putOut(join(folder, name), text, call.settings.data, '--out')
      }
      const lake: Record<string, unknown> = {}
      const ask = async (sql: string, asOf: string) => await asked(answers, { sql, ...(asOf && { as_of: asOf }) }, lake)
      const input = { ask, put, lake, wall: wall ?? formatInstant(instantNow(call)), metrics, instants }
      const { charts, files } = await recordPage(input)
      call.stderr(`${several(charts, 'chart')}, ${several(files, 'answer')} in ${out}/index.html\n`)
    })
  },
})

/** The text of an answer; what its head says of the lake is kept. */
async function asked(answers: Answers, body: object, lake: Record<string, unknown>): Promise<string> {
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
