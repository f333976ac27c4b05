import { randomUUID as draw } from 'node:crypto'
import { flushCompileCache } from 'node:module'
import { tmpdir } from 'node:os'
import type { AnswererCall, WorkerMessage } from '../server/query-worker.ts'
import { Desk, type DeskMeans } from '../server/session-manager.ts'
import { Pages } from '../server/result-pages.ts'
import { type PathAnswer, pathsOf } from '../server/paths.ts'
import { reportedRefusal } from '../server/refusal.ts'
import { engineLossIn } from '../../query/refusal.ts'
import { keepMemory } from '../../lake/store/memory.ts'
import { type Tool, toolsOf } from '../server/tools.ts'
import { explainThrown } from './frame.ts'
import { exitAtOnce, ownWorld, removeFolder } from '../cli/process.ts'
import { watchMemory } from '../cli/memory.ts'

/*
 * The process that makes the answers of `serve` and `mcp`. Whoever started it says first what it answers from, then
 * asks, and ends it; it ends itself when nobody can ask any more.
 */

/** Question to the query worker: a path, or a tool. */
export type DoorQuestion =
  | {
      readonly path: string
      /** Name under which places are shared. */
      readonly client: string
      /** Name that a program of that client gives itself. */
      readonly program?: string | undefined
      readonly method: string
      readonly query: string
      readonly headers: Readonly<Record<string, string | undefined>>
      readonly body: string
    }
  | { readonly tool: string; readonly args: unknown; readonly standing: object }

/** Answer of that process: of a path, with a file if one was written, or the JSON text of a tool. */
export type MadeAnswer = PathAnswer | string

const tell = (message: WorkerMessage<MadeAnswer>): void =>
  void process.send?.(message, undefined, undefined, () => undefined)

const { elapsed, sleep } = ownWorld()

async function begin(means: DeskMeans): Promise<void> {
  keepMemory(means.memory, '--memory')
  const askers = new Map<number, AbortController>()
  const onBegun = (closed: AbortSignal): void => {
    for (const [id, { signal }] of askers) if (signal === closed) tell({ id, begun: true })
  }
  const note = (words: string): void => void process.stderr.write(`note: ${words}\n`)
  const desk = new Desk(means, { sleep, draw, begun: onBegun, note })
  // A lake that cannot be opened is reported before the first question.
  await desk.begin()
  const pages = new Pages(desk, { elapsed, draw })
  const paths = pathsOf({ desk, scratch: tmpdir(), draw })
  const toolsWith = (standing: object): readonly Tool[] => toolsOf({ desk, pages, standing: async () => standing })
  const answerTo = async (question: DoorQuestion, closed: AbortSignal): Promise<MadeAnswer> => {
    if ('tool' in question) {
      const tool = toolsWith(question.standing).find(({ name }) => name === question.tool)
      if (tool === undefined) throw new RangeError(`no tool ${question.tool}`)
      return await tool.call(question.args, { client: '', closed })
    }
    const { path, query, body, ...asked } = question
    const show = paths[path]
    if (show === undefined) throw new RangeError(`no path ${path}`)
    return await show({ ...asked, query: new URLSearchParams(query), body: async () => body, closed })
  }
  const onCall = async (call: AnswererCall<DoorQuestion>): Promise<void> => {
    const { id } = call
    if ('gone' in call) return askers.get(id)?.abort()
    const asker = new AbortController()
    askers.set(id, asker)
    try {
      tell({ id, answer: await answerTo(call.question, asker.signal) })
    } catch (error) {
      const loss = engineLossIn(error)
      // A question that met the loss caused by a different one is sent again.
      if (loss !== 'met') tell({ id, refused: reportedRefusal(error) })
      if (loss !== undefined) tell({ broken: true })
    } finally {
      askers.delete(id)
    }
  }
  process.on('message', (message: AnswererCall<DoorQuestion>) => void onCall(message))
  watchMemory(means.memory, () => tell({ full: true }))
  // Report about itself: its tools.
  const heads = toolsWith({}).map(({ name, about, input }) => ({ name, about, input }))
  tell({ ready: heads })
  // Whoever is killed leaves no compiled code for the next one at its end.
  flushCompileCache()
}

/**
 * Ends this process after the one that started it, which may have been killed: the files in their folder are no longer
 * needed.
 */
function followStarter(): void {
  const [, , scratch] = process.argv
  try {
    if (scratch !== undefined) removeFolder(scratch)
  } finally {
    exitAtOnce(0)
  }
}

// A terminal stops every process; this one is ended by the process that started it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined)
process.on('disconnect', followStarter)
if (!process.connected) followStarter()
process.once('message', (means: DeskMeans) => {
  begin(means).catch(async (error: unknown) => {
    tell({ failed: reportedRefusal(await explainThrown(error, 'serve', means.folder)) })
  })
})
