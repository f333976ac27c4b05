import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/** What `test/golden/<name>.yaml` holds: rows of cases by what they show, patterns as texts. */
export const golden = (name: string): unknown =>
  parse(readFileSync(new URL(`../golden/${name}.yaml`, import.meta.url), 'utf8'))
