import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { stringify } from 'yaml'
import { readListing } from '../catalog/listing.ts'
import { loadCatalogue } from '../catalog/load.ts'
import { usage } from '../errors.ts'
import { putOut } from '../store/output.ts'
import { settingsOf } from './context.ts'
import { readGiven } from './given.ts'
import { documentText, talking } from './spec.ts'

/** `catalog import FILE`: a provider's own listing becomes a user catalogue file. */
export const importCommand = talking({
  name: 'catalog import',
  ends: [6],
  args: [{ name: 'file', about: 'the listing', required: true }],
  options: {
    '--out FILE': { about: 'the user catalogue file to write', default: 'my-endpoints.yaml' },
    '--all': 'also paths that do not end in _pit',
    '--force': 'overwrite the file',
    // Not an answer: the file that it overwrites may be one that the config names, and broken.
    '--json': 'one JSON document on stdout',
  },
  details:
    'Endpoints that the catalogue has already are left out; unknown keys are kept under `extra`.\nName the written file in pitlake.yaml: `catalogs: [my-endpoints.yaml]`.',
  run: async (input, deps) => {
    const [file = ''] = input.args
    const { out, all, force, json: scripted } = input.options
    const target = resolve(deps.cwd, out)
    if (existsSync(target) && !force)
      throw usage(out, { expected: 'no such file yet', got: 'one', next: 'use --force to overwrite' })
    const settings = settingsOf(input, deps)
    const others = settings.catalogs.filter((path) => path !== target)
    const catalogue = loadCatalogue(others)
    const listed = readListing(file, readGiven(deps.cwd, file, 'a readable listing'))
    const pit = listed.filter((row) => all || row.path.endsWith('_pit'))
    const fresh = pit.filter((row) => !catalogue.endpoints.has(row.path))
    const facts = {
      listed: listed.length,
      known: pit.length - fresh.length,
      added: fresh.length,
      skipped: listed.length - pit.length,
      file: fresh.length > 0 ? out : null,
    }
    if (fresh.length > 0) {
      const header = `# Endpoints imported from ${file.split('/').at(-1)}; name this file under \`catalogs:\` in pitlake.yaml.\n`
      const text = header + stringify({ endpoints: fresh }, { lineWidth: 0, aliasDuplicateObjects: false })
      loadCatalogue(others, undefined, [{ name: out, text }])
      await putOut(target, text, settings.data, '--out')
    }
    const { known, skipped, added } = facts
    const words = `${facts.listed} listed, ${known} known already, ${skipped} not point-in-time, ${added} added`
    deps.stdout(scripted ? documentText(facts) : `${words}${fresh.length > 0 ? ` to ${out}` : ''}\n`)
  },
})
