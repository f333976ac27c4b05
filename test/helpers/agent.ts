import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** What stands in an answer; a column may be anything. */
export interface AgentAnswer {
  readonly lake: { readonly lake: string; readonly version: number; readonly digest: string }
  readonly as_of: string | null
  readonly sql?: string
  readonly columns: readonly { readonly name: string }[]
  readonly row_count: number
  readonly cursor: string | null
  readonly notes: readonly string[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

/** An agent: the SDK's own client, and the program as that starts it. */
export class Agent implements AsyncDisposable {
  readonly client = new Client({ name: 'test', version: '1' })
  said = ''
  pid = 0

  static async at(folder: string, ...flags: readonly string[]): Promise<Agent> {
    const agent = new Agent()
    const args = [main, 'mcp', '--data', folder, ...flags]
    const env = getDefaultEnvironment()
    const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: 'pipe' })
    transport.stderr?.on('data', (part: Buffer) => (agent.said += part.toString()))
    await agent.client.connect(transport)
    agent.pid = transport.pid ?? 0
    return agent
  }

  /** The text of a tool's answer, or of its refusal; no answer is long, and each is there as an object, too. */
  async ask(
    name: string,
    given: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<{ text: string; refused: boolean }> {
    const told = await this.client.callTool({ name, arguments: given }, signal && { signal })
    const [{ text }, ...more] = told.content as { text: string }[] as [{ text: string }]
    const refused = told.isError === true
    const wanted: unknown = refused ? undefined : JSON.parse(text)
    if (more.length > 0 || Buffer.byteLength(text) > 20_000 || !isDeepStrictEqual(told.structuredContent, wanted))
      throw new Error(`no short text and the same as an object: ${text.slice(0, 1000)}`)
    return { text, refused }
  }

  /** The document of an answer. */
  async one(name: string, given: Record<string, unknown>): Promise<AgentAnswer> {
    const { text, refused } = await this.ask(name, given)
    if (refused) throw new Error(text)
    return JSON.parse(text) as AgentAnswer
  }

  async refusal(name: string, given: Record<string, unknown>): Promise<string> {
    const { text, refused } = await this.ask(name, given)
    if (!refused) throw new Error(`answered: ${text}`)
    return text
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close()
  }
}
