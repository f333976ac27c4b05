import { createInterface } from 'node:readline'
import { runCommandLine } from '../../src/commands/cli.ts'

// One process for many command lines, one after the other: a line of JSON on standard input asks, another one answers.
// It is to a command what a process of its own would be, but for the start and the end of that.

/** What is to run, where, and whether it is interrupted as soon as it listens for that. */
export interface Asked {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly interrupted: boolean
}

const answer = process.stdout.write.bind(process.stdout)
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0)

function interrupt(name: string | symbol): void {
  if (name === 'SIGINT') setImmediate(() => process.emit('SIGINT'))
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

for await (const line of createInterface({ input: process.stdin })) {
  const { argv, cwd, env, interrupted } = JSON.parse(line) as Asked
  process.chdir(cwd)
  process.env = { ...env }
  const [out, err] = [collect(process.stdout), collect(process.stderr)]
  if (interrupted) process.on('newListener', interrupt)
  const code = await runCommandLine(argv)
  process.off('newListener', interrupt)
  answer(`${JSON.stringify({ code, out: out(), err: err() })}\n`)
}
