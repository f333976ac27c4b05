import { backup, type BackedUp } from '../publish/backup.ts'
import { bytes, several } from '../words/figures.ts'
import { readContext } from './context.ts'
import { destinationNamed } from './publish.ts'
import { fileProgress } from './pull.ts'
import { answering } from './spec.ts'
import { lakeWorld, openedLake } from './world.ts'

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
  answer: async (input, deps) => {
    const { settings } = await readContext(input, deps)
    await openedLake(deps, settings.data)
    const what = {
      root: settings.data,
      to: destinationNamed(input.args[0], deps),
      thorough: input.options.thorough,
    }
    const done = await backup(what, { ...lakeWorld(deps, 'backup'), ...fileProgress(deps) })
    return { document: done, words: () => inWords(done) }
  },
})

function inWords({ destination, version, before, files, bytes: size, stamps, removed }: BackedUp): string {
  if (version === before && files + stamps + removed === 0) return `${destination} holds version ${version} already\n`
  const gone = removed > 0 ? `, ${several(removed, 'file')} went` : ''
  return `${destination} holds version ${version}: ${several(files, 'file')}, ${bytes(size)} came${gone}\n`
}
