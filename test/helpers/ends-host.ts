import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { runCommandLine } from '../../src/interfaces/commands/run-command-line.ts'

// One process for many command lines, one after the other: a line of JSON on standard input asks, another one answers.
// It is to a command what a process of its own would be, but for the start of that; it would end, as is told, where
// nothing of the command is left that keeps it.

/** What is to run, where, and whether it is interrupted as soon as it listens for that. */
export interface Asked {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly interrupted: boolean
}

/** Standard input, and what is written to standard output. */
const own = ['PipeWrap', 'TTYWrap']

const answer = process.stdout.write.bind(process.stdout)
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0)

/** Interrupts a command as soon as it listens for that. Once: a second signal ends a program at once. */
function interrupt(name: string | symbol): void {
  if (name !== 'SIGINT') return
  process.off('newListener', interrupt)
  setImmediate(() => process.emit('SIGINT'))
}

/** Collects what is written to a stream. */
function collect(stream: NodeJS.WriteStream): () => string {
  let text = ''
  stream.write = (chunk: string | Uint8Array) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    return true
  }
  return () => text
}

/** What keeps this process beside what it waits for itself, once a command had a while to let go of it. */
async function left(): Promise<readonly string[]> {
  for (let n = 0; ; n++) {
    const found = process.getActiveResourcesInfo().filter((name) => !own.includes(name))
    if (found.length === 0 || n === 100) return found
    await setTimeout(50, undefined, { ref: false })
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { argv, cwd, env, interrupted } = JSON.parse(line) as Asked
  process.chdir(cwd)
  process.env = { ...env }
  const out = collect(process.stdout)
  const err = collect(process.stderr)
  if (interrupted) process.on('newListener', interrupt)
  const code = await runCommandLine(argv)
  process.off('newListener', interrupt)
  answer(`${JSON.stringify({ code, out: out(), err: err(), left: await left() })}\n`)
}
// What a command left is told; it is not to hold up whoever ran it.
process.exit()
