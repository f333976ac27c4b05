import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { configJsonSchema } from '../../catalog/config.ts'
import { usage } from '../../base/errors.ts'
import { putOut } from '../../lake/store/output.ts'
import { documentText, talking } from '../cli/spec.ts'

export const initCommand = talking({
  options: {
    '--schema': 'print the JSON schema of pitlake.yaml for editors instead',
    '--force': 'overwrite files that are there',
  },
  run: async ({ options: { schema, force }, cwd, stdout, stderr }) => {
    if (schema) return stdout(documentText(configJsonSchema()))
    if (cwd.includes('?'))
      throw usage('init', { expected: 'a folder without ? in its path', got: cwd, next: 'rename it' })
    const files = ['pitlake.yaml', '.env.example'].map((name) => ({ name, path: resolve(cwd, name) }))
    if (existsSync(resolve(cwd, 'pitlake.yaml')) && !force)
      throw usage('pitlake.yaml', { expected: 'no such file yet', got: 'one', next: 'use --force to overwrite' })
    for (const { name, path } of files) {
      // A checkout of the project has an .env.example already.
      if (existsSync(path) && !force) {
        stderr(`kept ${name}\n`)
        continue
      }
      // The template files stand beside the catalogue, so that they are data, too.
      const template = new URL(`../../../catalog/templates/${name.replace(/^\./, 'dot')}`, import.meta.url)
      await putOut(path, readFileSync(template, 'utf8'), null, 'init')
      stderr(`wrote ${name}\n`)
    }
  },
})
