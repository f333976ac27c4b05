import { createHash } from 'node:crypto'
import type { Catalogue } from '../catalog/catalogue.ts'
import type { Json, Rules } from './entry.ts'

/** The availability rules of a catalogue, as the journal keeps them. */
export function rulesOf({ endpoints }: Catalogue): Rules {
  const text = JSON.stringify(Object.fromEntries([...endpoints].map(([path, { rules }]) => [path, rules])))
  return { digest: createHash('sha256').update(text).digest('hex'), rules: JSON.parse(text) as Json }
}
