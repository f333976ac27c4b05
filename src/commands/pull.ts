import { type Pulled, pull } from '../publish/pull.ts'
import { bytes, several } from '../report/page/words.ts'
import { readContext } from './context.ts'
import { type AnsweringSpec, flagOption } from './spec.ts'
import { lakeWorld, webOf } from './world.ts'

/** `pull SRC`: a mirror of another lake, brought up to date. */
export const pullCommand: AnsweringSpec<Pulled> = {
  name: 'pull',
  summary: 'Mirror a lake from where it was published, or from its folder: only what is missing travels.',
  args: [
    { name: 'source', about: 'what publish --lake wrote (a folder or s3://bucket/prefix), or a lake', required: true },
  ],
  options: [{ flags: '--thorough', about: 'read what is here already, too, and bring anew what is damaged' }],
  details: `Asks no provider. The mirror stands in --data, which must be empty or a mirror of the same lake. Every file is checked
against the digest that the journal holds for it; killed at any instant, the same command goes on. Results that were
stamped where the lake is replay here. A mirror is read-only: every command that writes, but pull and views, refuses it.`,
  answer: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    const world = lakeWorld(deps, 'pull')
    const onFile = (done: number, of: number): void => deps.live(done === of ? '' : `${done} of ${of} files`)
    const pulled = await pull(
      {
        root: settings.data,
        source: input.args[0] ?? '',
        cwd: deps.cwd,
        catalogue,
        thorough: flagOption(input, 'thorough'),
      },
      { ...world, web: webOf(deps), ...(deps.isTerminal && { onFile }) },
    )
    return { document: pulled, words: () => inWords(settings.data, pulled) }
  },
}

function inWords(data: string, { source, version, before, files, bytes: size, stamps, rewritten }: Pulled): string {
  const anew = rewritten ? `; version ${before} was written anew there, and so it was here` : ''
  if (version === before && files + stamps === 0 && !rewritten)
    return `${data} mirrors version ${version} of ${source} already\n`
  const count = `${several(files, 'file')}, ${bytes(size)}`
  return `${data} mirrors version ${version} of ${source}: ${count} came${anew}\n`
}
