import { randomUUID } from 'node:crypto'
import { publish, type PublishSummary } from '../../maintenance/publish/publish.ts'
import { destinationOf } from '../../maintenance/publish/s3.ts'
import type { Destination, Web } from '../../maintenance/publish/destination.ts'
import { vacuumPublished } from '../../maintenance/publish/vacuum.ts'
import { bytes, filesInWords, several, table } from '../../base/figures.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { formatDuration } from '../../base/time.ts'
import { answering, type Call, type Deps, showLive } from '../cli/spec.ts'
import { besideWorld, lakeWorld, openedLake } from '../cli/world.ts'
import { kinds } from '../../base/option-kinds.ts'
import { backup, type BackupSummary, pull, type PullSummary } from '../../maintenance/publish/lake.ts'
import type { FileProgress } from '../../maintenance/publish/lake-copy.ts'

export const publishCommand = answering({
  viewsAfter: true,
  recorded: true,
  args: { '<dest>': 'a folder, or s3://bucket/prefix' },
  options: {
    '--lake': 'also copy journal, stamps and files to DEST/lake, for pitlake pull',
    '--verify': 'also read files at the destination and compare checksums, not only names and sizes',
    '--vacuum': 'list published files that no kept version needs, instead of publishing',
    '--keep DURATION': ['with --vacuum: keep versions that were the newest within this time', '7d'],
    '--yes': 'with --vacuum: remove these files',
  },
  details: `Each table becomes visible by one commit. The table \`versions\` is written last. It lists which version of each table belongs to which
version of the lake. If publish is killed, the same command continues. docs/how-to/publish.md describes tables and readers.`,
  answer: async (call) => {
    const { args, settings, catalogue, options } = call
    const { lake: withLake, verify, vacuum, keep: keepSeconds, yes: really } = options
    await openedLake(call)
    const what = { root: settings.data, catalogue, to: destinationNamed(args[0], call) }
    const world = lakeWorld(call, 'publish')
    if (!vacuum) {
      const summary = await publish({ ...what, withLake, verify }, world)
      return { document: summary, words: () => publishedInWords(summary) }
    }
    const freed = await vacuumPublished({ ...what, keepSeconds, really }, world)
    const verb = freed.dry_run ? 'would be freed; run it with --yes' : 'freed'
    const keptText = `kept: what was in use within ${formatDuration(keepSeconds)}`
    return { document: freed, words: () => `${filesInWords(freed)} ${verb}; ${keptText}\n` }
  },
})

/** Builds the real dependencies of requests to a bucket. */
const webOf = (deps: Deps): Web => ({ ...besideWorld(deps), env: deps.env })

/** Opens the destination of that name, with the dependencies of this call. */
export function destinationNamed(name = '', deps: Deps): Destination {
  return destinationOf(name, { disk: realDisk, mark: randomUUID().slice(0, 13), cwd: deps.cwd, web: webOf(deps) })
}

function publishedInWords(published: PublishSummary): string {
  const { lake_copy: copy, lost, destination, version, tables } = published
  const { missing, changed } = lost
  const damageNotes = [
    ...(missing > 0 ? [`${several(missing, 'file')} missing or cut`] : []),
    ...(changed > 0 ? [`${several(changed, 'file')} changed`] : []),
  ]
  const rows = Object.entries(tables).map(([name, { delta_version, files_added, files_removed, bytes_added }]) => {
    return [name, delta_version, files_added, files_removed, bytes(bytes_added)]
  })
  const header = ['table', 'delta version', 'files added', 'files removed', 'bytes']
  const again = damageNotes.length > 0 ? `found there: ${damageNotes.join(', ')}; all were copied again\n` : ''
  const summary = `version ${version} of the lake is at ${destination}\n${table(header, rows)}`
  const here = rows.length > 0 ? summary : `${destination} already has version ${version}\n`
  return `${again}${here}${copy ? `version ${copy.version} is in lake/: ${filesInWords(copy)} came\n` : ''}`
}

export const pullCommand = answering({
  args: { '<source>': ['what publish --lake wrote (a folder or s3://bucket/prefix), or a lake', kinds.folder] },
  options: { '--thorough': 'also read files that are already here, and replace damaged ones' },
  details: `pull contacts no provider. --data is the folder of the mirror. It must be empty, or a mirror of the same lake. pull checks every file
against the digest in the journal. If it is killed, the same command continues.

Results that were stamped in the lake can be replayed in the mirror. A mirror is read-only: of the commands that write, only pull and
views work in it.`,
  answer: async (call) => await pullCopy(call, { own: false, thorough: call.options.thorough }),
})

export const restoreCommand = answering({
  args: { '<source>': ['what backup wrote (a folder or s3://bucket/prefix), or a lake or mirror', kinds.folder] },
  details: `restore contacts no provider. --data is the folder of the new lake. It must be empty, or a mirror of that lake, which then becomes a
lake. restore checks every file against the digest in the journal and names what differs (exit 4). If it is killed, the same command
continues; until then the folder is a mirror.

After a restore, write to one copy only: two copies with different new data cannot be joined again.`,
  answer: async (call) => await pullCopy(call, { own: true, thorough: true }),
})

async function pullCopy(call: Call, how: { readonly own: boolean; readonly thorough: boolean }) {
  const { cwd, catalogue } = call
  const { data } = call.settings
  const [source = ''] = call.args
  const deps = { ...lakeWorld(call, how.own ? 'restore' : 'pull'), web: webOf(call), onFile: fileProgress(call) }
  const pulled = await pull({ root: data, source, cwd, catalogue, ...how }, deps)
  return { document: pulled, words: () => `${data} ${pulledInWords(pulled, how.own)}\n` }
}

function fileProgress(deps: Deps): FileProgress {
  return (done, of) => showLive(deps, done === of ? '' : `${done} of ${of} files`)
}

function pulledInWords(pulled: PullSummary, withUserFiles: boolean): string {
  const { source, version, before, files, stamps, rewritten } = pulled
  const of = `${withUserFiles ? 'is' : 'mirrors'} version ${version} of ${source}`
  if (withUserFiles) return `${of}: ${filesInWords(pulled)} came, every file is as its journal says`
  if (version === before && files + stamps === 0 && !rewritten) return `${of} already`
  const anew = rewritten ? `; version ${before} was rewritten there, and therefore here too` : ''
  return `${of}: ${filesInWords(pulled)} came${anew}`
}

export const backupCommand = answering({
  viewsAfter: true,
  recorded: true,
  args: { '<dest>': 'a folder, or s3://bucket/prefix' },
  options: { '--thorough': 'also read files that are already there, and replace damaged ones' },
  details: `backup writes journal, runs, stamps and the files of the newest version to DEST/lake. It checks each file against the digest in the
journal. At DEST it removes files that neither this version nor a stamped result needs. You need only one backup for every past
time, because observed_as_of selects rows.

A folder of \`publish --lake\` can become a backup, and \`pull\` can mirror a backup. The configuration and your own catalogue are not part
of a lake: copy them separately.`,
  answer: async (call) => {
    const { settings, args, options } = call
    await openedLake(call)
    const what = { root: settings.data, to: destinationNamed(args[0], call), thorough: options.thorough }
    const done = await backup(what, { ...lakeWorld(call, 'backup'), onFile: fileProgress(call) })
    return { document: done, words: () => backedUp(done) }
  },
})

function backedUp(done: BackupSummary): string {
  const { destination, version, before, files, stamps, removed } = done
  const of = `${destination} holds version ${version}`
  if (version === before && files + stamps + removed === 0) return `${of} already\n`
  return `${of}: ${filesInWords(done)} came${removed > 0 ? `, ${several(removed, 'file')} went` : ''}\n`
}
