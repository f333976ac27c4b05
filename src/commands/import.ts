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
export const catalogImportCommand = talking({
  args: { '<file>': 'the listing' },
  options: {
    '--out FILE': ['the user catalogue file to write', 'my-endpoints.yaml'],
    '--all': 'also paths that do not end in _pit',
    '--force': 'overwrite the file',
    // Not an answer: the file that it overwrites may be one that the config names, and broken.
    '--json': 'one JSON document on stdout',
  },
  details:
    'Endpoints that the catalogue has already are left out; unknown keys are kept under `extra`.\nName the written file in pitlake.yaml: `catalogs: [my-endpoints.yaml]`.',
  run: async (call) => {
    const { options, cwd, stdout } = call
    const [file = ''] = call.args
    const { out, all, force, json } = options
    const target = resolve(cwd, out)
    if (existsSync(target) && !force)
      throw usage(out, { expected: 'no such file yet', got: 'one', next: 'use --force to overwrite' })
    const settings = settingsOf(call)
    const others = settings.catalogs.filter((path) => path !== target)
    const { endpoints } = loadCatalogue(others)
    const listed = readListing(file, readGiven(call, file, 'a readable listing'))
    const pit = listed.filter((row) => all || row.path.endsWith('_pit'))
    const fresh = pit.filter((row) => !endpoints.has(row.path))
    const [known, added, skipped] = [pit.length - fresh.length, fresh.length, listed.length - pit.length]
    if (added > 0) {
      const header = `# Endpoints imported from ${file.split('/').at(-1)}; name this file under \`catalogs:\` in pitlake.yaml.\n`
      const text = header + stringify({ endpoints: fresh }, { lineWidth: 0, aliasDuplicateObjects: false })
      loadCatalogue(others, undefined, [{ name: out, text }])
      await putOut(target, text, settings.data, '--out')
    }
    const words = `${listed.length} listed, ${known} known already, ${skipped} not point-in-time, ${added} added`
    const document = { listed: listed.length, known, added, skipped, file: added > 0 ? out : null }
    stdout(json ? documentText(document) : `${words}${added > 0 ? ` to ${out}` : ''}\n`)
  },
})
