import { relative } from 'node:path'
import { exitCode } from '../src/base/errors.ts'
import { resolveSettings } from '../src/catalog/settings.ts'

// Prints the folder of the lake of this checkout, as the program itself finds it; relative if it lies in the checkout.
try {
  const { data } = resolveSettings({ flags: {}, env: process.env, cwd: process.cwd() })
  const inside = relative(process.cwd(), data)
  console.log(inside === '' || inside.startsWith('..') ? data : inside)
} catch (error) {
  console.error(`pitlake: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = exitCode(error)
}
