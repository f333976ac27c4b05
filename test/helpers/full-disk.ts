import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

// Loaded before a program (`node --import`): whatever it writes, links or renames finds no room on the disk.
function full(owner: object, names: readonly string[]): void {
  for (const name of names)
    Object.defineProperty(owner, name, {
      value: async (path: unknown) =>
        await Promise.reject(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', path })),
    })
}

full(fs, ['rename', 'link', 'writeFile'])
const handle = await fs.open(process.execPath)
full(Object.getPrototypeOf(handle) as object, ['writeFile', 'appendFile'])
await handle.close()
syncBuiltinESMExports()
