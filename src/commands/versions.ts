import { Ledger } from '../ledger/ledger.ts'
import { type VersionChange, versionChanges } from '../ledger/held-runs.ts'
import { formatMicros } from '../time.ts'
import { filesInWords } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { answering } from './spec.ts'

/** `versions`: the lake's history, a line a commit. */
export const versionsCommand = answering({
  options: {},
  details:
    'Replaced files left the view for others with the same rows, removed ones were vacuumed. The time of a version\nis what observed_as_of goes by.',
  answer: async ({ settings }) => {
    using ledger = await Ledger.openToRead(settings.data)
    const versions = versionChanges(ledger).map((one) => ({ ...one, committed_at: formatMicros(one.committed_at) }))
    const words = () => (versions.length === 0 ? 'no version yet\n' : table(header, versions.map(line)))
    return { document: versions, words }
  },
})

const header = ['version', 'committed at', 'job', 'points added', 'added', 'replaced', 'removed', 'also']

function line(one: Omit<VersionChange, 'committed_at'> & { readonly committed_at: string }): (string | number)[] {
  const { version, committed_at, job, points_added, added, replaced, removed } = one
  const also = [
    ...(['violations', 'stamps'] as const).flatMap((name) => (one[name] > 0 ? [`${one[name]} ${name}`] : [])),
    ...(one.rules ? ['rules'] : []),
  ]
  const changes = [added, replaced, removed].map((change) => (change.files === 0 ? '' : filesInWords(change)))
  return [version, committed_at, job, points_added, ...changes, also.join(', ')]
}
