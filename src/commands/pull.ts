import { kinds } from '../kinds.ts'
import { type BackedUp, backup } from '../publish/publish-lake.ts'
import type { CopyDeps } from '../publish/lake-copy.ts'
import { pull, type Pulled } from '../publish/pull.ts'
import { bytes, several } from '../words/figures.ts'
import { destinationNamed, webOf } from './publish.ts'
import { type CommandAnswer, answering, type CommandContext, type Deps, type Input, showLive } from './spec.ts'
import { lakeWorld, openedLake } from './world.ts'

/** `pull SRC`: a mirror of another lake, brought up to date. */
export const pullCommand = answering({
  name: 'pull',
  ends: [3, 4, 5, 6, 7],
  args: [
    {
      name: 'source',
      kind: kinds.folder,
      about: 'what publish --lake wrote (a folder or s3://bucket/prefix), or a lake',
      required: true,
    },
  ],
  options: { '--thorough': 'read what is here already, too, and bring anew what is damaged' },
  details: `Asks no provider. The mirror stands in --data, which must be empty or a mirror of the same lake. Every file is checked
against the digest that the journal holds for it; killed at any instant, the same command goes on. Results that were
stamped where the lake is replay here. A mirror is read-only: every command that writes, but pull and views, refuses it.`,
  answer: async (input, context, deps) =>
    await brought(input, context, deps, { own: false, thorough: input.options.thorough }),
})

/** `restore SRC`: a lake of its own from a backup. */
export const restoreCommand = answering({
  name: 'restore',
  ends: [3, 4, 5, 6, 7],
  args: [
    {
      name: 'source',
      kind: kinds.folder,
      about: 'what backup wrote (a folder or s3://bucket/prefix), or a lake or mirror',
      required: true,
    },
  ],
  options: {},
  details: `Asks no provider. The lake stands in --data, which must be empty or a mirror of that lake, which then becomes a lake of
its own. Every file is checked against the digest that the journal holds for it; what does not fit is named (exit 4).
Killed at any instant, the same command goes on; until all of it is there the folder is a mirror, which nothing writes to.
Let one lake alone go on: what two copies of it bring apart cannot be joined again.`,
  answer: async (input, context, deps) => await brought(input, context, deps, { own: true, thorough: true }),
})

async function brought(
  input: Input,
  { settings, catalogue }: CommandContext,
  deps: Deps,
  how: { readonly own: boolean; readonly thorough: boolean },
): Promise<CommandAnswer<Pulled>> {
  const world = lakeWorld(deps, how.own ? 'restore' : 'pull')
  const pulled = await pull(
    { root: settings.data, source: input.args[0] ?? '', cwd: deps.cwd, catalogue, ...how },
    { ...world, web: webOf(deps), ...fileProgress(deps) },
  )
  return { document: pulled, words: () => (how.own ? restoredInWords : inWords)(settings.data, pulled) }
}

/** How many files have come. */
function fileProgress(deps: Deps): Required<Pick<CopyDeps, 'onFile'>> {
  return { onFile: (done, of) => showLive(deps, done === of ? '' : `${done} of ${of} files`) }
}

function restoredInWords(data: string, { source, version, files, bytes: size }: Pulled): string {
  const count = `${several(files, 'file')}, ${bytes(size)}`
  return `${data} is version ${version} of ${source}: ${count} came, every file is as its journal says\n`
}

function inWords(data: string, { source, version, before, files, bytes: size, stamps, rewritten }: Pulled): string {
  const anew = rewritten ? `; version ${before} was written anew there, and so it was here` : ''
  if (version === before && files + stamps === 0 && !rewritten)
    return `${data} mirrors version ${version} of ${source} already\n`
  const count = `${several(files, 'file')}, ${bytes(size)}`
  return `${data} mirrors version ${version} of ${source}: ${count} came${anew}\n`
}

/** `backup DEST`: the lake a second time, for `restore`. */
export const backupCommand = answering({
  name: 'backup',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  args: [{ name: 'dest', about: 'a folder, or s3://bucket/prefix', required: true }],
  options: { '--thorough': 'read what stands there already, too, and bring anew what is damaged' },
  details: `Writes journal, runs, stamps and the files of the newest version to DEST/lake, each file checked against the digest
that the journal holds for it, and takes away there what that version and the stamped results do not need. One copy answers
for every instant: observed_as_of is a filter on rows. What publish --lake wrote goes on as a backup, and pull mirrors it.
The configuration and the user's own catalogue are not part of a lake.`,
  answer: async (input, { settings }, deps) => {
    await openedLake(deps, settings.data)
    const what = { root: settings.data, to: destinationNamed(input.args[0], deps), thorough: input.options.thorough }
    const done = await backup(what, { ...lakeWorld(deps, 'backup'), ...fileProgress(deps) })
    return { document: done, words: () => backedUpInWords(done) }
  },
})

function backedUpInWords({ destination, version, before, files, bytes: size, stamps, removed }: BackedUp): string {
  if (version === before && files + stamps + removed === 0) return `${destination} holds version ${version} already\n`
  const gone = removed > 0 ? `, ${several(removed, 'file')} went` : ''
  return `${destination} holds version ${version}: ${several(files, 'file')}, ${bytes(size)} came${gone}\n`
}
