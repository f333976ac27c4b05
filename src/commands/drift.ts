import type { Drift } from '../catalog/drift.ts'
import { LakeError } from '../errors.ts'
import { findDrift } from '../metrics/drift.ts'
import { several } from '../words/figures.ts'
import { labelled } from '../words/table.ts'
import { readGiven } from './given.ts'
import { answering } from './spec.ts'
import { besideWorld } from './world.ts'

/** `catalog drift`: the catalogue against what the provider lists now. */
export const catalogDriftCommand = answering({
  options: {
    '--file FILE': 'a saved listing, instead of asking the provider',
    '--path PATH': ['where below /v1/metrics/ the provider lists its endpoints', 'endpoints'],
    '--all': 'also listed paths that do not end in _pit',
    '--strict': 'exit code 4 when anything differs',
  },
  details:
    'One request. A parameter of which the listing says nothing has not changed; placeholders without a real\nname are reported apart. `catalog import` turns a saved listing into catalogue rows.',
  answer: async (call) => {
    const { settings, catalogue, options } = call
    const { file, path, all, strict } = options
    const text = file === undefined ? '' : readGiven(call, file, 'a readable listing', `--file ${file}`)
    const listing = file === undefined ? null : { name: file, text }
    const drift = await findDrift({ settings, catalogue, file: listing, path, all }, besideWorld(call))
    return { document: drift, words: () => inWords(drift), error: strict ? verdict(drift) : null }
  },
})

function countOf({ gone, changed, ...rest }: Drift): number {
  return rest.new.length + gone.length + changed.length
}

function verdict(drift: Drift): LakeError | null {
  const count = countOf(drift)
  if (count === 0) return null
  const subject = `the provider's listing differs in ${several(count, 'endpoint')}`
  return new LakeError('integrity', { subject, next: 'see the report; `pitlake catalog import` adds new ones' })
}

function inWords(drift: Drift): string {
  const { listed, catalogued, gone, changed, unmapped } = drift
  const differing = changed.flatMap(({ path, changes }) =>
    changes.map(({ parameter, added, removed }) => {
      const parts = [...added.map((value) => `+${value}`), ...removed.map((value) => `-${value}`)]
      return `${path}: ${parameter} ${parts.join(' ')}`
    }),
  )
  const unnamed = `${unmapped.length} placeholders have no real name yet (metrics.paths)`
  const rows = { new: drift.new, gone, changed: differing, unmapped: unmapped.length > 0 ? [unnamed] : [] }
  const lines = Object.entries(rows).flatMap(([label, own]) => own.map((text) => [label, text] as const))
  const none = countOf(drift) === 0 ? 'no drift\n' : ''
  return `${listed} listed, ${catalogued} in the catalogue\n${labelled(lines, 10)}${none}`
}
