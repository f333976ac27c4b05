import { once } from 'node:events'
import { serveMcp } from '../server/mcp.ts'
import type { Tool, ToolCall } from '../server/tools.ts'
import { readContext } from '../cli/context.ts'
import { type Answers, deskOptions, openAnswers } from './desk.ts'
import { wallOf, wallOption } from './serve.ts'
import { standingNow } from './status.ts'
import { check } from '../report/status.ts'
import { type Call, talking } from '../cli/spec.ts'
import { programVersion } from '../cli/process.ts'
import { withScratch } from './query.ts'
import { lookingAtViews } from './views.ts'
import { untilStopped } from '../cli/world.ts'

export const mcpCommand = talking({
  viewsBefore: true,
  options: { ...wallOption, ...deskOptions('60s') },
  details: `The tools are metrics, describe, query, panel, universe, lookahead and status. The pages of docs/ are resources. A tool that returns
data requires a time: as_of, or ts in the decisions. A query is one SELECT over views and macros of the lake. It reads no other files
and writes nothing.

Each answer names the version and digest of the lake, and with show_sql the SQL that ran. It has text and an object
(structuredContent), with at most 20,000 bytes on a page. mcp ends when its standard input ends.

In the configuration of an agent, /path/to/pitlake is the checkout after \`make shell\`, or the folder in which you installed the
packed file:

  {"mcpServers": {"pitlake": {
    "command": "/path/to/pitlake/node_modules/.bin/pitlake",
    "args": ["mcp", "--data", "/path/to/data"]}}}`,
  run: async (typed) => {
    const call = await readContext(typed)
    const { settings, signal: stopped, stderr } = call
    await withScratch(async (scratch) => {
      await using answers = openAnswers(call, scratch, { wall: wallOf(typed.options), limited: true })
      const heads = (await answers.ready()) as readonly Omit<Tool, 'call'>[]
      if (stopped.aborted) return
      const look = lookingAtViews(typed)
      const close = await serveMcp({
        tools: heads.map((head) => ({ ...head, call: calling(head.name, answers, call, look) })),
        version: programVersion(),
        secrets: settings.secrets,
        input: process.stdin,
        output: process.stdout,
        note: (text) => stderr(`note: ${text}\n`),
      })
      const ended = new AbortController()
      const { signal } = ended
      const ends = [once(process.stdin, 'end', { signal }), once(process.stdin, 'close', { signal })]
      await Promise.race([...ends, untilStopped(call)]).catch(() => undefined)
      ended.abort()
      await close()
    })
  },
})

/** Builds the call of a tool, after a look at the views; the state of the lake is read here, where the settings are. */
function calling(tool: string, answers: Answers, call: Call, look: () => Promise<void>): ToolCall {
  return async (args, { closed: gone }) => {
    await look()
    const now = tool === 'status' ? await standingNow(call) : null
    const standing = now === null ? {} : { check: check(now).lines.join('\n'), ...now }
    const answer = await answers.ask({ tool, args, standing }, gone)
    if (typeof answer !== 'string') throw new RangeError(`${tool} was answered as a path`)
    return answer
  }
}
