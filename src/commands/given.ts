import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { usage } from '../errors.ts'

/** The text of a file that the user names, `-` for standard input; `subject` is what named it. */
export function readGiven(cwd: string, file: string, expected: string, subject = file): string {
  try {
    return readFileSync(file === '-' ? 0 : resolve(cwd, file), 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw usage(subject, { expected, got: code === 'ENOENT' ? 'no such file' : (code ?? String(cause)), cause })
  }
}

/** The path of a stamped result that the user names. */
export function stampedPath(cwd: string, file: string): string {
  const path = resolve(cwd, file)
  if (existsSync(path)) return path
  throw usage(file, { expected: 'a stamped result', got: 'no such file' })
}
