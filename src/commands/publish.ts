import { randomUUID } from 'node:crypto'
import { publish, type PublishSummary } from '../publish/publish.ts'
import { destinationOf } from '../publish/s3.ts'
import type { Destination, Web } from '../publish/destination.ts'
import { type PublishedVacuum, vacuumPublished } from '../publish/vacuum.ts'
import { bytes, filesInWords, several } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { realDisk } from '../store/disk.ts'
import { formatDuration } from '../time.ts'
import { answering, type Deps } from './spec.ts'
import { besideWorld, lakeWorld, openedLake } from './world.ts'

/** `publish`: the lake as Delta tables, for engines on other machines. */
export const publishCommand = answering({
  recorded: true,
  args: { '<dest>': 'a folder, or s3://bucket/prefix' },
  options: {
    '--lake': 'also copy journal, stamps and files to DEST/lake, for pitlake pull',
    '--verify': 'also read what is there and compare its checksums, not only names and sizes',
    '--vacuum': 'instead, say which published files no kept version of a table needs',
    '--keep DURATION': ['with --vacuum: versions that were the newest within this time can be read afterwards', '7d'],
    '--yes': 'with --vacuum: really remove them',
  },
  details:
    'Each table becomes visible by one commit, `versions` last: it says which version of each table belongs to which\nversion of the lake. Killed at any instant, the same command goes on. docs/publish.md has the tables and who reads them.',
  answer: async (call) => {
    const { args, settings, catalogue, options } = call
    const { lake: withLake, verify, vacuum, keep: keepSeconds, yes: really } = options
    await openedLake(call)
    const what = { root: settings.data, catalogue, to: destinationNamed(args[0], call) }
    const world = lakeWorld(call, 'publish')
    if (!vacuum) {
      const summary = await publish({ ...what, withLake, verify }, world)
      return { document: summary, words: () => inWords(summary) }
    }
    const freed = await vacuumPublished({ ...what, keepSeconds, really }, world)
    return { document: freed, words: () => freedInWords(freed, keepSeconds) }
  },
})

/** The real world behind what asks a bucket. */
export function webOf(deps: Deps): Web {
  return { ...besideWorld(deps), env: deps.env }
}

/** The destination of that name, as this call reaches it. */
export function destinationNamed(name = '', deps: Deps): Destination {
  return destinationOf(name, { disk: realDisk, mark: randomUUID().slice(0, 13), cwd: deps.cwd, web: webOf(deps) })
}

function inWords({ lake_copy: copy, lost, destination, version, tables }: PublishSummary): string {
  const { missing, changed } = lost
  const found = [
    ...(missing > 0 ? [`${several(missing, 'file')} missing or cut`] : []),
    ...(changed > 0 ? [`${several(changed, 'file')} changed`] : []),
  ]
  const rows = Object.entries(tables).map(([name, { delta_version, files_added, files_removed, bytes_added }]) => {
    return [name, delta_version, files_added, files_removed, bytes(bytes_added)]
  })
  const header = ['table', 'delta version', 'files added', 'files removed', 'bytes']
  return [
    found.length > 0 && `found there: ${found.join(', ')}; all were brought again\n`,
    rows.length === 0 && `${destination} tells of version ${version} already\n`,
    rows.length > 0 && `version ${version} of the lake is at ${destination}\n${table(header, rows)}`,
    copy && `version ${copy.version} is in lake/: ${filesInWords(copy)} came\n`,
  ]
    .map((part) => part || '')
    .join('')
}

function freedInWords(freed: PublishedVacuum, keepSeconds: number): string {
  const verb = freed.dry_run ? 'would be freed; run it with --yes' : 'freed'
  return `${filesInWords(freed)} ${verb}; kept: what was in use within ${formatDuration(keepSeconds)}\n`
}
