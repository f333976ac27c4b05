import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { usage } from '../../base/errors.ts'
import { redact } from '../../base/secrets.ts'
import { entriesIn, namesIn } from '../../lake/store/disk.ts'
import { readText } from '../../lake/store/files.ts'
import { longestQuestion } from './bounds.ts'
import type { Tool } from './tools.ts'
import { isObject } from '../../base/json.ts'
import type { OptionFact, OptionKind, Options } from '../../query/options.ts'

/** Inputs of the server for agents. */
interface McpInput {
  readonly tools: readonly Tool[]
  readonly version: string
  readonly secrets: readonly string[]
  readonly input: Readable
  readonly output: Writable
  /** Reports problems of the connection itself. */
  readonly note: (text: string) => void
}

const instructions = `pitlake: a research data lake of point-in-time crypto metrics and a registry of tokenized assets.
Every question about data names an instant (as_of, or ts in the decisions), and the answer holds only what was knowable then.
A point describes the interval that begins at t and is knowable from available_at on, which is later: never join on t.
Use pit_join, pit_long, pit_window and panel, and prove a query of your own with lookahead. Every answer names the version
and digest of the lake (null behind a limit of the server that is before them), with show_sql also the SQL that ran, and has at most 20 kB: a cursor goes on. The pages are resources; begin with pitlake://docs/how-to/cookbook and pitlake://docs/reference/joins.`

/** Standard input is one client. */
const theAgent = 'the agent'

const docs = fileURLToPath(new URL('../../../docs/', import.meta.url))

/** Serves the tools and the pages over a pair of streams, by the official SDK; gives how to end that. */
export async function serveMcp(input: McpInput): Promise<() => Promise<void>> {
  const pages = await pagesIn(docs)
  const { close } = serveStdio(() => serverOf(input, pages), {
    transport: new StdioServerTransport(input.input, input.output),
    onerror: (error) => input.note(redact(error.message, input.secrets)),
  })
  return close
}

function serverOf({ tools, version, secrets }: McpInput, pages: readonly DocsPage[]): McpServer {
  const server = new McpServer({ name: 'pitlake', version }, { instructions })
  for (const { name, about, input, call } of tools) {
    const annotations = { readOnlyHint: true, openWorldHint: false }
    server.registerTool(
      name,
      { description: about, inputSchema: schemaOf(input), annotations },
      async (args, { mcpReq }) => {
        const textContent = (words: string) => [{ type: 'text' as const, text: redact(words, secrets) }]
        try {
          refuseLong(args)
          const document = redact(await call(args, { client: theAgent, closed: mcpReq.signal }), secrets)
          return { content: textContent(document), structuredContent: JSON.parse(document) as Record<string, unknown> }
        } catch (error) {
          return { isError: true, content: textContent(error instanceof Error ? error.message : String(error)) }
        }
      },
    )
  }
  for (const { name, title, path } of pages) {
    const about = { title, mimeType: 'text/markdown' }
    server.registerResource(name, `pitlake://docs/${name}`, about, async (uri) => ({
      contents: [{ uri: uri.href, mimeType: 'text/markdown', text: await readText(path) }],
    }))
  }
  return server
}

/** Refuses arguments that are longer than a body over HTTP may be. */
function refuseLong(args: unknown): void {
  if (Buffer.byteLength(JSON.stringify(args) ?? '') <= longestQuestion) return
  throw usage('the arguments', { expected: `at most ${longestQuestion} bytes`, got: 'more' })
}

/** A page of the documentation. */
interface DocsPage {
  /** Path below the folder of pages, without `.md`. */
  readonly name: string
  readonly path: string
  /** First heading of the page, or its name. */
  readonly title: string
}

/** Records of choices are for those who change the program. */
const hiddenFolders = new Set(['decisions'])

/** Lists the pages of a folder and of the folders in it, with their headings. */
async function pagesIn(folder: string): Promise<DocsPage[]> {
  const entries = await entriesIn(folder)
  const folders = entries.filter((entry) => entry.isDirectory() && !hiddenFolders.has(entry.name))
  const below = await Promise.all(
    folders.map(async ({ name }) => (await namesIn(`${folder}${name}`)).map((file) => `${name}/${file}`)),
  )
  const files = [...entries.filter((entry) => entry.isFile()).map(({ name }) => name), ...below.flat()]
  return await Promise.all(
    files
      .filter((file) => file.endsWith('.md'))
      .map(async (file) => {
        const path = `${folder}${file}`
        const name = file.slice(0, -'.md'.length)
        return { name, path, title: /^# (.+)$/m.exec(await readText(path))?.[1] ?? name }
      }),
  )
}

/**
 * Converts a table of options to a schema for agents. It lets everything through: the code that reads the options
 * refuses what does not fit, in the words of every other interface.
 */
function schemaOf(table: Options) {
  const properties = Object.entries(table).map(([name, fact]) => [
    name,
    { ...shapes[fact.kind](fact), description: fact.about },
  ])
  const schema = {
    type: 'object',
    properties: Object.fromEntries(properties) as Record<string, object>,
    required: Object.keys(table).filter((name) => table[name]?.required === true),
    additionalProperties: false,
  }
  return {
    '~standard': {
      version: 1,
      vendor: 'pitlake',
      validate: (value: unknown) => ({ value: isObject(value) ? value : {} }),
      jsonSchema: { input: () => schema, output: () => schema },
    },
  } as const
}

const text = { type: 'string' }
const texts = { type: 'array', items: text, minItems: 1 }
const choice = ({ choices = [] }: OptionFact) => ({ type: 'string', enum: choices })

const shapes: Readonly<Record<OptionKind, (fact: OptionFact) => object>> = {
  instant: () => text,
  span: () => ({ type: ['string', 'number'], examples: ['15m', '2d', 0] }),
  calendarSpan: () => ({ type: ['string', 'number'], examples: ['90d', '3month', 0] }),
  text: () => ({ ...text, minLength: 1 }),
  list: () => texts,
  switch: () => ({ type: 'boolean' }),
  choice,
  choices: (fact) => ({ type: 'array', items: choice(fact), minItems: 1 }),
  metrics: () => ({ anyOf: [texts, { type: 'object', additionalProperties: text, minProperties: 1 }] }),
  count: ({ most }) => ({ type: 'integer', minimum: 1, ...(most !== undefined && { maximum: most }) }),
  grid: () => ({
    type: 'object',
    properties: { since: text, until: text, step: { ...text, examples: ['15m', '1h', '1d', '1w', '1month'] } },
    required: ['since', 'until', 'step'],
    additionalProperties: false,
  }),
  records: () => ({
    type: 'array',
    items: { type: 'object', properties: { ts: text, asset: text }, required: ['ts'] },
    minItems: 1,
  }),
}
