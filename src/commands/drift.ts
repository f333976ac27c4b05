import type { Drift } from '../catalog/drift.ts'
import { LakeError } from '../errors.ts'
import { findDrift } from '../metrics/drift.ts'
import { several } from '../words/figures.ts'
import { readGiven } from './given.ts'
import { answering } from './spec.ts'
import { besideWorld } from './world.ts'

/** `catalog drift`: the catalogue against what the provider lists now. */
export const driftCommand = answering({
  name: 'catalog drift',
  ends: [3, 4, 5, 6],
  options: {
    '--file FILE': 'a saved listing, instead of asking the provider',
    '--path PATH': { about: 'where below /v1/metrics/ the provider lists its endpoints', default: 'endpoints' },
    '--all': 'also listed paths that do not end in _pit',
    '--strict': 'exit code 4 when anything differs',
  },
  details:
    'One request. A parameter of which the listing says nothing has not changed; placeholders without a real\nname are reported apart. `catalog import` turns a saved listing into catalogue rows.',
  answer: async (input, { settings, catalogue }, deps) => {
    const file = input.options.file
    const drift = await findDrift(
      {
        settings,
        catalogue,
        file:
          file === undefined
            ? null
            : { name: file, text: readGiven(deps.cwd, file, 'a readable listing', `--file ${file}`) },
        path: input.options.path ?? 'endpoints',
        all: input.options.all,
      },
      besideWorld(deps),
    )
    return { document: drift, words: () => inWords(drift), error: input.options.strict ? verdict(drift) : null }
  },
})

function verdict({ gone, changed, ...rest }: Drift): LakeError | null {
  const count = rest.new.length + gone.length + changed.length
  if (count === 0) return null
  const subject = `the provider's listing differs in ${several(count, 'endpoint')}`
  return new LakeError('integrity', { subject, next: 'see the report; `pitlake catalog import` adds new ones' })
}

function inWords({ listed, catalogued, gone, changed, unmapped, ...rest }: Drift): string {
  const lines = [`${listed} listed, ${catalogued} in the catalogue`]
  for (const path of rest.new) lines.push(`new       ${path}`)
  for (const path of gone) lines.push(`gone      ${path}`)
  for (const { path, changes } of changed)
    for (const { parameter, added, removed } of changes) {
      const parts = [...added.map((value) => `+${value}`), ...removed.map((value) => `-${value}`)]
      lines.push(`changed   ${path}: ${parameter} ${parts.join(' ')}`)
    }
  if (unmapped.length > 0) lines.push(`unmapped  ${unmapped.length} placeholders have no real name yet (metrics.paths)`)
  if (rest.new.length + gone.length + changed.length === 0) lines.push('no drift')
  return `${lines.join('\n')}\n`
}
