import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { configJsonSchema } from '../config/config.ts'
import { usage } from '../errors.ts'
import { putOut } from '../store/output.ts'
import { documentText, talking } from './spec.ts'

/** `init`: the two files a new lake starts from; never overwrites. */
export const initCommand = talking({
  name: 'init',
  ends: [6],
  options: {
    '--schema': 'print the JSON schema of pitlake.yaml for editors instead',
    '--force': 'overwrite files that are there',
  },
  run: async (input, deps) => {
    if (input.options.schema) return deps.stdout(documentText(configJsonSchema()))
    if (deps.cwd.includes('?'))
      throw usage('init', { expected: 'a folder without ? in its path', got: deps.cwd, next: 'rename it' })
    const files = ['pitlake.yaml', '.env.example'].map((name) => ({ name, path: resolve(deps.cwd, name) }))
    const taken = files.filter((file) => existsSync(file.path))
    if (taken.length > 0 && !input.options.force) {
      throw usage(taken.map((file) => file.name).join(', '), {
        expected: 'no such file yet',
        got: 'one',
        next: 'use --force to overwrite',
      })
    }
    for (const file of files) {
      await putOut(file.path, template(file.name), null, 'init')
      deps.stderr(`wrote ${file.name}\n`)
    }
  },
})

/** The template files stand beside the catalogue, so that they are data, too. */
function template(name: string): string {
  return readFileSync(new URL(`../../catalog/templates/${name.replace(/^\./, 'dot')}`, import.meta.url), 'utf8')
}
