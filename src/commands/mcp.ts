import { once } from 'node:events'
import { serveMcp } from '../door/mcp.ts'
import { Pages } from '../door/pages.ts'
import { toolsOf } from '../door/tools.ts'
import { readContext } from './context.ts'
import { deskOptions, openDesk, standingNow } from './desk.ts'
import type { CommandSpec, Deps, Input } from './spec.ts'
import { programVersion } from './program.ts'
import { untilStopped } from './world.ts'

/** `mcp`: the lake for agents, over standard input and output. */
export const mcpCommand: CommandSpec = {
  name: 'mcp',
  ends: [4],
  options: deskOptions('60s'),
  details: [
    'Tools: metrics, describe, query, panel, universe, lookahead, status; the pages of docs/ are resources. An instant is',
    'mandatory where data are told: as_of, or ts in the decisions. One SELECT is answered, over the views and macros of the',
    'lake and no files; nothing is written. Every answer names the version and digest of the lake and the SQL that ran.',
    '',
    'It ends when standard input does. In the configuration of an agent:',
    '  {"mcpServers": {"pitlake": {"command": "npx", "args": ["pitlake", "mcp", "--data", "/path/to/data"]}}}',
  ].join('\n'),
  run,
}

async function run(input: Input, deps: Deps): Promise<void> {
  const context = readContext(input, deps)
  await using opened = await openDesk(input, deps, context.settings.data)
  const { desk, elapsed, draw } = opened
  if (deps.signal.aborted) return
  using pages = new Pages(desk, { elapsed, draw })
  const close = await serveMcp({
    tools: toolsOf({ desk, pages, standing: async () => await standingNow(context, deps) }),
    version: programVersion(),
    secrets: context.settings.secrets,
    input: process.stdin,
    output: process.stdout,
    note: (text) => deps.stderr(`note: ${text}\n`),
  })
  const ended = new AbortController()
  const { signal } = ended
  await Promise.race([
    once(process.stdin, 'end', { signal }),
    once(process.stdin, 'close', { signal }),
    untilStopped(deps),
  ]).catch(() => undefined)
  ended.abort()
  await close()
}
