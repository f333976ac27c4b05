import { Ledger } from '../ledger/ledger.ts'
import { type FilesChange, type VersionChange, versionChanges } from '../ledger/held-runs.ts'
import { formatMicros } from '../time.ts'
import { bytes, whole } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { answering } from './spec.ts'

/** `versions`: the lake's history, a line a commit. */
export const versionsCommand = answering({
  name: 'versions',
  ends: [4],
  options: {},
  details:
    'Replaced files left the view for others with the same rows, removed ones were vacuumed. The time of a version\nis what observed_as_of goes by.',
  answer: async (_, { settings }) => {
    using ledger = await Ledger.openToRead(settings.data)
    const versions = versionChanges(ledger)
    const document = versions.map((one) => ({ ...one, committed_at: formatMicros(one.committed_at) }))
    return { document, words: () => (versions.length === 0 ? 'no version yet\n' : table(header, versions.map(line))) }
  },
})

const header = ['version', 'committed at', 'job', 'points added', 'added', 'replaced', 'removed', 'also']

function line(version: VersionChange): (string | number)[] {
  const { added, replaced, removed, violations, stamps, rules } = version
  const also = [
    ...(violations > 0 ? [`${violations} violations`] : []),
    ...(stamps > 0 ? [`${stamps} stamps`] : []),
    ...(rules ? ['rules'] : []),
  ]
  const changes = [added, replaced, removed].map(changed)
  return [
    version.version,
    formatMicros(version.committed_at),
    version.job,
    version.points_added,
    ...changes,
    also.join(', '),
  ]
}

function changed({ files, bytes: size }: FilesChange): string {
  return files === 0 ? '' : `${whole(files)} files, ${bytes(size)}`
}
