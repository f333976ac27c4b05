import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { usage } from '../../base/errors.ts'
import { makeFolder, realDisk } from '../../lake/store/disk.ts'
import { putOut } from '../../lake/store/output.ts'
import { talking } from '../cli/spec.ts'

/** A file that the command writes, from a template of the catalogue. */
interface WrittenFile {
  /** Path below the top folder of the repository. */
  readonly path: string
  readonly template: string
  /** Whether git runs it as a program. */
  readonly isProgram: boolean
}

const written: readonly WrittenFile[] = [
  { path: '.github/workflows/lookahead.yml', template: 'lookahead.yml', isProgram: false },
  { path: '.githooks/pre-commit', template: 'pre-commit', isProgram: true },
]

export const initCiCommand = talking({
  details: `Run it in the top folder of a git repository. It writes .github/workflows/lookahead.yml, which runs pitlake lookahead on pull
requests and on pushes to main, and .githooks/pre-commit, which refuses a commit that looks ahead. If one of them exists, neither
is written. Read both before you commit them: the workflow names two variables that you set on GitHub.

  pitlake init-ci
  git config core.hooksPath .githooks   turn the hook on

The page "Guard a research repository" describes both.`,
  run: async ({ cwd, stderr }) => {
    const existing = written.find(({ path }) => existsSync(resolve(cwd, path)))
    if (existing !== undefined) {
      const next = 'remove it to have it written again, or add `pitlake lookahead .` to it yourself'
      throw usage(existing.path, { expected: 'no such file yet', got: 'one', next })
    }
    for (const { path, template, isProgram } of written) {
      const file = resolve(cwd, path)
      await makeFolder(realDisk, dirname(file))
      await putOut(file, templateText(template), null, 'init-ci')
      if (isProgram) chmodSync(file, 0o755)
      stderr(`wrote ${path}\n`)
    }
    if (!existsSync(join(cwd, '.git')))
      stderr('note: there is no .git here; git and GitHub read both in the top folder alone\n')
    stderr('next  git config core.hooksPath .githooks\n')
  },
})

function templateText(name: string): string {
  return readFileSync(new URL(`../../../catalog/templates/${name}`, import.meta.url), 'utf8')
}
