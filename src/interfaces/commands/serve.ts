import { listen, listenAt, type Routes } from '../server/listen.ts'
import { pathNames, posts } from '../server/paths.ts'
import { refusedOverHttp } from '../server/refusal.ts'
import { usage } from '../../base/errors.ts'
import { kinds } from '../../base/option-kinds.ts'
import { pageShows } from '../page/files.ts'
import { knowledgeOptions } from '../../query/options.ts'
import { readOption } from '../../query/read-options.ts'
import { readContext } from '../cli/context.ts'
import { type Answers, deskOptions, openAnswers } from './desk.ts'
import { exportPage } from './export-page.ts'
import { withScratch } from './query.ts'
import { lookingAtViews } from './views.ts'
import { showsOf } from './status.ts'
import { type OptionValues, talking } from '../cli/spec.ts'
import { untilStopped } from '../cli/world.ts'

/** Option with the as_of limit of a server. */
export const wallOption = { '--as-of TIME': ['as_of limit: show nothing that became known later', kinds.text] } as const

const options = {
  '--listen ADDRESS': 'where: 127.0.0.1:8460; elsewhere than on this machine PITLAKE_TOKEN must be set',
  '--export DIR': 'write the page with its answers as files instead; files of the same name are replaced',
  '--metrics LIST': 'charts of --export: paths (default: all that are stored)',
  '--instants N': ['timestamps that the slider of --export offers', kinds.count(), '24'],
  ...wallOption,
  ...deskOptions('5m'),
} as const

export const serveCommand = talking({
  viewsBefore: true,
  options,
  details: `  /           the page for people; it uses the addresses below
  /query      one SELECT: GET ?sql=… or POST, with as_of, observed_as_of
  /panel      decisions × metrics: GET ?calendar=SINCE,UNTIL,STEP&assets=…&metrics=… or POST of JSON
  /metrics    metrics of the catalogue (numbers for Prometheus: \`pitlake status --listen\`)
  /lookahead  whether a query looks ahead: GET ?sql=… or POST of JSON; not with --as-of
  /explain    why a stamped result has changed: POST of JSON; not with --as-of
  /healthz    the verdict of \`status --check\`; not with --as-of

Answers are JSON lines. The header Accept, or ?format=, selects an Arrow stream, Parquet, CSV or JSON. Headers of each answer
name the version and digest of the lake. A query cannot read files or change settings. docs/how-to/serve-and-agents.md describes
everything.

--export DIR writes the charts, the universe and the coverage of the page into a folder for any static server, such as
python3 -m http.server -d DIR. Parts that need a query, such as SQL, then refer to \`pitlake serve\`.

Example: curl 'http://127.0.0.1:8460/query?as_of=2024-06-01' --data 'SELECT count(*) FROM points'`,
  run: async (typed) => {
    const { listen: address, export: out, metrics = [], instants } = typed.options
    if ((address === undefined) === (out === undefined)) {
      const got = out === undefined ? 'none' : 'both'
      throw usage('pitlake serve', { expected: '--listen ADDRESS, such as 127.0.0.1:8460, or --export DIR', got })
    }
    const call = await readContext(typed)
    const at = address === undefined ? undefined : listenAt(address, call.settings)
    const wall = wallOf(typed.options)
    await withScratch(async (scratch) => {
      await using answers = openAnswers(call, scratch, { wall, limited: wall !== undefined })
      await answers.ready()
      if (out !== undefined) await exportPage(call, answers, { out, limit: wall, metrics, instants })
      if (at === undefined) return
      const { '/healthz': healthz } = showsOf(call)
      const page = await pageShows()
      const look = lookingAtViews(typed)
      const asking = Object.fromEntries(pathNames.map((path) => [path, showing(path, answers, look)]))
      const shows = { ...page, ...asking, ...(healthz && wall === undefined && { '/healthz': healthz }) }
      const open = Object.keys(page)
      const note = (words: string): void => call.stderr(`note: ${words}\n`)
      await using door = await listen(at, call.settings, shows, { readers, posts, linked: open, free: open, note })
      call.stderr(`listening at ${door.url}\n`)
      await untilStopped(call)
    })
  },
})

/** Reads the as_of limit; undefined if there is none. */
export function wallOf({ asOf, ledger }: Pick<OptionValues<typeof options>, 'asOf' | 'ledger'>): string | undefined {
  if (asOf === undefined) return undefined
  if (ledger === 'now') throw usage('--ledger now', { expected: 'no --as-of with it', got: `--as-of ${asOf}` })
  return String(readOption(knowledgeOptions.as_of, '--as-of', asOf))
}

/** Maximum number of admitted readers; most of them wait. */
const readers = 512

/** Builds the route of a path: its question is answered, after a look at the views, or refused in words. */
function showing(path: string, answers: Answers, look: () => Promise<void>): Routes[string] {
  return async ({ method, query, headers, body, client, program, closed }) => {
    try {
      await look()
      const { accept, 'content-type': type } = headers
      const text = method === 'POST' ? await body() : ''
      const question = { method, query: query.toString(), headers: { accept, 'content-type': type }, body: text }
      const answer = await answers.ask({ path, client, program, ...question }, closed)
      if (typeof answer === 'string') throw new RangeError(`${path} was answered as a tool`)
      return answer
    } catch (error) {
      return refusedOverHttp(error)
    }
  }
}
