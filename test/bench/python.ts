import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { figure, type Figure, type Measured } from './measured.ts'
import { root } from './provider.ts'

/** The Python package beside the same SQL in bare DuckDB and beside polars, with equal answers; its own script measures. */
export async function benchPython(): Promise<Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-python-'))
  try {
    const times = join(folder, 'times.json')
    const done = spawnSync(join(root, 'scripts/python.sh'), ['figures', times], { cwd: root, encoding: 'utf8' })
    const lines = done.stdout.trimEnd().split('\n')
    // The script ends with 1 if a bound is broken, after it has measured everything.
    if (done.status !== 0 && done.status !== 1) throw new Error(done.stderr)
    for (const { name, times: seconds } of JSON.parse(readFileSync(times, 'utf8')) as Figure[]) figure(name, seconds)
    return lines.map((line) => ({ line, within: done.status === 0 }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
