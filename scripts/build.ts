import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

function emit(): void {
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const run = spawnSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
  if (run.status !== 0) throw new Error('the sources do not compile')
}

/** Everything under src that is not TypeScript is read at run time from the same place under dist. */
function copyAssets(): void {
  for (const item of readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })) {
    if (!item.isFile() || item.name.endsWith('.ts')) continue
    const from = join(item.parentPath, item.name)
    const to = join(root, 'dist', from.slice(join(root, 'src').length))
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(from, to)
  }
}

if (import.meta.main) {
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  emit()
  copyAssets()
  // What the package starts: an old Node is told, or the pinned one takes over, before any module of it is linked.
  for (const name of ['launch.cjs', 'library.cjs', 'pinned.cjs', 'imports.cjs'])
    copyFileSync(join(root, 'scripts', name), join(root, 'dist', name))
  chmodSync(join(root, 'dist/launch.cjs'), 0o755)
}
